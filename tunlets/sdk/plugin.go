// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// ProtocolVersion is the version of the way in which the Analyzer and a
	// tunlet find each other. The version of the Dynamic Tunlet API itself is
	// APIVersion, agreed on in Describe.
	ProtocolVersion = 1
	// APIVersion is the version of the Dynamic Tunlet API that this package
	// speaks.
	APIVersion = "2"
	// PluginName is the name under which a tunlet process serves its tunlet.
	PluginName = "tunlet"
)

// The names of files by which the Analyzer finds tunlets.
const (
	// ProgramPrefix is what the name of a tunlet's program begins with; the tunlet's name
	// follows.
	ProgramPrefix = "attune-tunlet-"
	// DeclarationSuffix is what the name of a declarative tunlet's file ends with; the
	// tunlet's name stands before it.
	DeclarationSuffix = ".tunlet.yaml"
	// Interpreter is, after ProgramPrefix, the name of the program that runs those. It is
	// no tunlet of its own.
	Interpreter = "declarative"
	// PackageProgram is the name of the program that has all tunlets of Attune, to which the
	// programs of each are links: they share a process.
	PackageProgram = "attune-tunlets"
	// ServeArgument has PackageProgram serve them to the Analyzer that has started it.
	ServeArgument = "serve"
)

// Handshake is what the Analyzer and a tunlet must agree on before they talk.
// The cookie keeps people from running a tunlet by hand; it protects nothing.
// It is a variable only because Go has no constant structs: nobody writes it.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  ProtocolVersion,
	MagicCookieKey:   "ATTUNE_TUNLET",
	MagicCookieValue: "b8b0a1f6d0c94f0fa4d9a3f1a2c7e5d3",
}

// GRPCPlugin joins the services of a tunlet's process to go-plugin. On the Analyzer's
// side it dispenses an attunev1.TunletServiceClient. It speaks gRPC only.
type GRPCPlugin struct {
	plugin.NetRPCUnsupportedPlugin

	// Register adds the services to a server; nil on the Analyzer's side.
	Register func(*grpc.Server)
}

var _ plugin.GRPCPlugin = (*GRPCPlugin)(nil)

// GRPCServer registers the services; go-plugin calls it once.
func (p *GRPCPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	p.Register(s)
	return nil
}

// GRPCClient returns an attunev1.TunletServiceClient.
func (*GRPCPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return attunev1.NewTunletServiceClient(c), nil
}
