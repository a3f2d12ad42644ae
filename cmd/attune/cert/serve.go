// SPDX-License-Identifier: Apache-2.0

package cert

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/audit"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/instance"
	"github.com/attune-hpc/attune/internal/issuer"
	"github.com/attune-hpc/attune/internal/logging"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/renew"
	"github.com/attune-hpc/attune/internal/served"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const certServeLong = `Serve renews certificates until SIGINT or SIGTERM: whoever shows one that holds gets the
same once more, to a new key and for --days from now on. It needs an issuing CA
(attune cert init --issuer), and refuses the root, whose key belongs on no machine that
serves; it does not run as root. The CA is read for each certificate: another one may
be put in its place.

Its own certificate it issues to itself, for the names and addresses of --host. It
learns from the --registry which certificates are revoked, and renews none of them.`

// ServiceUser is the user as whom the issuing service of a site runs.
const ServiceUser = "attune-ca"

// IssuerDirectory is where the issuing CA is.
const IssuerDirectory = "/etc/attune/issuer"

// serveFlags are those of `attune cert serve`.
type serveFlags struct {
	ca, listen, state, roots, registry, logFormat string
	hosts                                         []string
	days                                          float64
	check                                         bool
}

func newCertServe(p *cli.Env) *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Renew the certificates of a site",
		Long:    certServeLong,
		Example: "  attune cert serve --listen :7118 --host ca.example.org",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.RefuseRoot("the issuing service", ServiceUser, "attune-ca", "cert serve", flags.check); err != nil {
				return err
			}
			s, err := flags.service(p)
			if err != nil {
				return err
			}
			if flags.check {
				_, err := fmt.Fprintln(p.Stdout, "configuration is valid")
				return err
			}
			s.Frame = served.New(s.log)
			if err := s.Serve(cmd.Context(), s.open, s.run); err != nil {
				return &exitcode.Error{Code: exitcode.Failure, Err: err}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&flags.ca, "ca", IssuerDirectory, "`DIR` of the issuing CA")
	cmd.Flags().StringVar(&flags.listen, "listen", ":7118", "serve at `HOST:PORT`")
	cmd.Flags().StringSliceVar(&flags.hosts, "host", nil, "`NAME`s and addresses under which it serves (default: the host name)")
	cmd.Flags().Float64Var(&flags.days, "days", shortDays, "how many days certificates hold, from 0.0007")
	cmd.Flags().StringVar(&flags.roots, "tls-ca", "", "`FILE` with the CAs whose certificates are renewed (default: ca.crt in the directory of the CA)")
	cmd.Flags().StringVar(&flags.state, "state-dir", "/var/lib/attune-ca", "`DIR` of its own certificate and of the audit log")
	cmd.Flags().StringVar(&flags.registry, "registry", "", "learn what is revoked from the site's registry at `ADDRESS`, tls://HOST:PORT; without one, what is revoked is renewed")
	cmd.Flags().StringVar(&flags.logFormat, "log-format", logging.FormatText, "how to log: text or json")
	cmd.Flags().BoolVar(&flags.check, "check-config", false, "check the settings, as the user who serves, and end")
	cli.MustComplete(cmd, "log-format", func() []string { return []string{logging.FormatText, logging.FormatJSON} })
	return cmd
}

// service is `attune cert serve`.
type service struct {
	*served.Frame

	flags serveFlags
	life  time.Duration // of what it issues
	files pki.Files     // of its own certificate
	log   *slog.Logger

	// What open has opened.
	identity *pki.Identity
	audit    *audit.Log
}

// service checks the flags and the CA; errors have the code for usage.
func (f serveFlags) service(p *cli.Env) (*service, error) {
	s := &service{flags: f}
	var err error
	if s.life, err = valid(f.days, shortDays); err != nil {
		return nil, err
	}
	wrong := func(err error) error { return exitcode.UsageError(err, "see `attune cert serve --help`") }
	if _, err := logging.ParseFormat(f.logFormat); err != nil {
		return nil, wrong(err)
	}
	s.log = logging.Service(p.Stderr, f.logFormat, slog.LevelInfo)
	if _, _, err := net.SplitHostPort(f.listen); err != nil {
		return nil, wrong(fmt.Errorf("--listen %q: want HOST:PORT: %w", f.listen, err))
	}
	if len(f.hosts) == 0 {
		host, err := os.Hostname()
		if err != nil {
			return nil, wrong(fmt.Errorf("host name: %w; give it with --host", err))
		}
		s.flags.hosts = []string{host}
	}
	if f.registry != "" {
		if err := (registry.Options{URL: f.registry, Identity: new(pki.Identity)}).Validate(); err != nil {
			return nil, wrong(err)
		}
	}
	if _, err := s.authority(); err != nil {
		return nil, wrong(err)
	}
	s.files = pki.FilesIn(f.state, "node")
	s.files.CA = cmp.Or(f.roots, filepath.Join(f.ca, "ca.crt"))
	return s, nil
}

// authority reads the issuing CA.
func (s *service) authority() (*pki.Authority, error) {
	authority, err := readCA(s.flags.ca)
	if err == nil && authority.IsRoot() {
		err = fmt.Errorf("%s has the root: keep its key off line, and make an issuing CA with attune cert init --issuer", s.flags.ca)
	}
	return authority, err
}

// open makes what can be refused before it serves.
func (s *service) open(context.Context) error {
	if err := instance.Directory(s.flags.state, 0o700); err != nil {
		return err
	}
	lock, err := instance.Lock(filepath.Join(s.flags.state, "lock"))
	if err != nil {
		return err
	}
	s.CloseAtEnd(lock.Close)
	if s.identity, err = s.ownIdentity(); err != nil {
		return err
	}
	if s.audit, err = audit.Open(audit.Options{Path: filepath.Join(s.flags.state, "audit.jsonl"), Log: s.log}); err != nil {
		return err
	}
	s.CloseAtEnd(s.audit.Close)
	return s.identity.Remember(filepath.Join(s.flags.state, "revoked.json"))
}

// run serves until ctx ends.
func (s *service) run(ctx context.Context) error {
	issues := issuer.New(issuer.Options{Authority: s.authority, Valid: s.life, Revoked: s.identity.IsRevoked, Log: s.log})
	calls := authn.NewCalls(s.audit.Refused) // before the audit log, which they must not fill
	server := issuer.NewServer(issues, authn.New(authn.Options{Identity: s.identity, Refused: s.audit.Refused}),
		grpc.ChainUnaryInterceptor(calls.Unary(), s.audit.Unary()))
	renewer, err := renew.New(renew.Options{
		Identity: s.identity, Log: s.log,
		Ask: func(_ context.Context, request []byte) ([]byte, error) {
			return issues.Issue(s.identity.Leaf(), request)
		},
	})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.flags.listen)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(listener) })
	group.Go(func() error { renewer.Run(ctx); return nil })
	group.Go(func() error { <-ctx.Done(); server.Stop(); return nil })
	group.Go(func() error { return s.heed(ctx) })
	s.log.Info("serving", "address", listener.Addr().String(), "ca", s.flags.ca, "valid", s.life.String(), "version", buildinfo.Get().Version)
	s.Notify(daemon.SdNotifyReady)
	return group.Wait()
}

// heed has the service's identity know what is revoked until ctx ends.
func (s *service) heed(ctx context.Context) error {
	if s.flags.registry == "" {
		s.log.Warn("no registry is named: certificates that are revoked are renewed (--registry)")
		return nil
	}
	site, err := registry.OpenNode(ctx, registry.Options{URL: s.flags.registry, Identity: s.identity, Name: "issuer", Log: s.log})
	if err != nil {
		return err
	}
	defer site.Close()
	if err := site.Watch(ctx, func(registry.View) {}); ctx.Err() == nil {
		return err
	}
	return nil
}

// ownIdentity is the service's own certificate. One that cannot be used, or is for other
// hosts, as at the first start, is issued anew.
func (s *service) ownIdentity() (*pki.Identity, error) {
	r := pki.Request{Name: s.flags.hosts[0], Role: attunev1.Role_ROLE_NODE, Hosts: s.flags.hosts, Valid: s.life}
	if identity, err := pki.Open(s.files, s.log); err == nil && r.Describes(identity.Leaf()) {
		return identity, nil
	}
	authority, err := s.authority()
	if err != nil {
		return nil, err
	}
	issued, err := authority.Issue(r)
	if err != nil {
		return nil, err
	}
	if err := issued.Write(s.files.Cert, s.files.Key, true); err != nil {
		return nil, err
	}
	return pki.Open(s.files, s.log)
}
