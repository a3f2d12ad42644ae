// SPDX-License-Identifier: Apache-2.0

// Command testtunlet is the tunlet of the Analyzer's tests: a real process that
// behaves as its file name says, attune-tunlet-BEHAVIOUR; see behaviours.go. Called
// attune-tunlets it is a package of tunlets; see package.go.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

func main() {
	if filepath.Base(os.Args[0]) == packageProgram {
		servePackage()
		return
	}
	name := strings.TrimPrefix(filepath.Base(os.Args[0]), "attune-tunlet-")
	switch name {
	case "crashstart":
		fmt.Fprintln(os.Stderr, "panic: no licence found")
		os.Exit(3)
	case "sleepycrash":
		crashAgain()
	case "hangstart":
		for { // select {} is a deadlock that the run-time ends where there is no cgo
			time.Sleep(time.Hour)
		}
	case "garbage":
		fmt.Println("hello, I am not a plugin")
		return
	}
	register := func(s *grpc.Server) { attunev1.RegisterTunletServiceServer(s, newTunlet(name)) }
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: sdk.Handshake,
		Plugins:         plugin.PluginSet{sdk.PluginName: &sdk.GRPCPlugin{Register: register}},
		GRPCServer:      plugin.DefaultGRPCServer,
	})
}

// crashAgain ends the process unless it is the first one of its file.
func crashAgain() {
	mark, err := os.OpenFile(os.Args[0]+".started", os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, "panic: started again")
		os.Exit(3)
	}
	_ = mark.Close()
}
