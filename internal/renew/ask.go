// SPDX-License-Identifier: Apache-2.0

package renew

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Check says why an issuing service at an address, HOST:PORT, cannot be asked to renew
// certificates in files by this process.
func Check(address string, files pki.Files) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("issuing service %q: want HOST:PORT: %w", address, err)
	}
	return files.Renewable()
}

// maxAnswer bounds an answer, bytes.
const maxAnswer = 64 << 10

// ByService returns a Renewer that asks the issuing service at an address, HOST:PORT.
func ByService(address string, identity *pki.Identity, log *slog.Logger) (*Renewer, error) {
	return New(Options{Identity: identity, Ask: service(address, identity), Log: log})
}

// service asks a service by the identity whose certificate is to be renewed. The service
// has to have the role node.
func service(address string, identity *pki.Identity) Ask {
	creds := authn.New(authn.Options{Identity: identity, Admit: isService})
	return func(ctx context.Context, request []byte) (answer []byte, err error) {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds), grpc.WithDisableServiceConfig(),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, conn.Close()) }()
		got, err := attunev1.NewCertificateServiceClient(conn).Renew(ctx, &attunev1.RenewRequest{CertificateRequest: request})
		return got.GetCertificates(), err
	}
}

func isService(p *attunev1.Principal) error {
	if p.GetRole() == attunev1.Role_ROLE_NODE {
		return nil
	}
	return fmt.Errorf("%w: %s has not the role node: it is no service of this site", authn.ErrNotAdmitted, p.GetName())
}
