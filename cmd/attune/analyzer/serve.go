// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/analyzer/channel"
	"github.com/attune-hpc/attune/analyzer/service"
	"github.com/attune-hpc/attune/analyzer/store"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/knowledge"
	"github.com/attune-hpc/attune/cmd/attune/internal/tunletfind"
	"github.com/attune-hpc/attune/internal/audit"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/instance"
	"github.com/attune-hpc/attune/internal/logging"
	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/renew"
	"github.com/attune-hpc/attune/internal/rundir"
	"github.com/attune-hpc/attune/internal/served"
	"github.com/attune-hpc/attune/internal/turns"
	"github.com/attune-hpc/attune/internal/unixmsg"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ServiceSocket is the name of the service's socket in its run directory.
const ServiceSocket = "analyzer.sock"

// analyzerService is `attune analyzer serve`.
type analyzerService struct {
	*served.Frame

	settings  analyzerSettings
	read      func() (analyzerSettings, error)
	level     *slog.LevelVar
	log       *slog.Logger
	identity  *pki.Identity  // nil: nothing goes over the network
	renewer   *renew.Renewer // nil: nobody renews it
	audit     *audit.Log
	embedded  *embed.Server // nil: the registry is elsewhere
	registry  *registry.Client
	turns     *turns.Board
	metrics   *metrics.Registry
	export    func(context.Context) error // of metrics
	listeners []net.Listener
	service   *service.Service
}

// serveAnalyzer serves until a signal. A second one ends it at once.
func serveAnalyzer(ctx context.Context, p *cli.Env, s analyzerSettings, read func() (analyzerSettings, error)) error {
	a := &analyzerService{settings: s, read: read, level: new(slog.LevelVar), turns: turns.New(), metrics: metrics.New(metrics.Analyzer)}
	a.level.Set(s.level)
	a.log = logging.Service(p.Stderr, s.logFormat, a.level)
	a.Frame = served.New(a.log)
	return a.Serve(ctx, func(ctx context.Context) error {
		if err := a.open(ctx); err != nil {
			return &exitcode.Error{Code: exitcode.Failure, Err: err}
		}
		return nil
	}, a.run)
}

// open makes everything that can be refused.
func (a *analyzerService) open(ctx context.Context) (err error) {
	if err := a.alone(); err != nil {
		return err
	}
	a.warnOfUsers(ctx, a.settings)
	if a.settings.needsTLS() {
		if a.identity, err = pki.OpenAs(attunev1.Role_ROLE_ANALYZER, a.settings.tls, a.log); err != nil {
			return err
		}
		if err := a.identity.Remember(filepath.Join(a.settings.stateDir, "revoked.json")); err != nil {
			return err
		}
	}
	if a.settings.issuer != "" {
		if a.renewer, err = renew.ByService(a.settings.issuer, a.identity, a.log); err != nil {
			return err
		}
	}
	if a.audit, err = audit.Open(audit.Options{Path: a.settings.auditLog, Log: a.log}); err != nil {
		return err
	}
	a.CloseAtEnd(a.audit.Close)
	if err := a.openRegistry(ctx); err != nil {
		return err
	}
	if err := a.listen(ctx); err != nil {
		return err
	}
	cfg := a.settings.service
	cfg.Record, cfg.Registry = a.record(), a.registry
	cfg.ReportDir = filepath.Join(a.settings.stateDir, "reports")
	cfg.TunletDirs = tunletfind.Dirs(cfg.TunletDirs)
	cfg.Digests = objfile.NewDigests(rundir.Current().DigestDir())
	cfg.DescriptionDir = a.descriptionDir()
	cfg.Audit = a.audit.Lines
	if knowledge := a.openKnowledge(ctx); knowledge != nil {
		cfg.Knowledge = knowledge
	}
	cfg.Version, cfg.Log = buildinfo.Get().Version, a.log
	cfg.Metrics = a.metrics
	if a.service, err = service.New(cfg); err != nil {
		return err
	}
	a.readMetrics()
	a.export, err = a.metrics.Open(ctx, a.settings.metricsListen, a.settings.metricsFile, a.log)
	return err
}

// openKnowledge opens what the service's sessions have learnt; nil if that cannot
// be had: it is a hint.
func (a *analyzerService) openKnowledge(ctx context.Context) *store.Store {
	s, err := store.Open(ctx, filepath.Join(a.settings.stateDir, knowledge.File))
	if err != nil {
		a.log.Warn("sessions do not learn from each other", "error", err)
		return nil
	}
	a.CloseAtEnd(s.Close)
	return s
}

// descriptionDir is where what tunlets say of themselves is kept: where the user
// has it, else with the service's own state, for each session would ask anew.
func (a *analyzerService) descriptionDir() string {
	if dir := rundir.Current().DescriptionDir(); dir != "" {
		return dir
	}
	dir := filepath.Join(a.settings.stateDir, "tunlets")
	if err := instance.Directory(dir, 0o700); err != nil {
		a.log.Warn("each session starts all tunlets to ask them what they are", "error", err)
		return ""
	}
	return dir
}

// alone makes the directories and locks them for this process.
func (a *analyzerService) alone() error {
	const passing = 0o755 // users pass through to the sockets
	if err := errors.Join(instance.Directory(a.settings.runDir, passing), instance.Directory(a.settings.stateDir, 0o700)); err != nil {
		return err
	}
	for _, dir := range []string{a.settings.runDir, a.settings.stateDir} {
		lock, err := instance.Lock(filepath.Join(dir, "analyzer.lock"))
		if errors.Is(err, instance.ErrTaken) {
			err = fmt.Errorf("%w: stop it first, or give this one directories of its own with --%s and --%s", err, keyRunDir, keyStateDir)
		}
		if err != nil {
			return err
		}
		a.CloseAtEnd(lock.Close)
	}
	return nil
}

// openRegistry starts the embedded registry, if it is that, and connects.
func (a *analyzerService) openRegistry(ctx context.Context) error {
	url := a.settings.registry
	if url == registryEmbedded {
		o := a.settings.embed
		o.Identity, o.Log = a.identity, a.log
		var err error
		if a.embedded, err = embed.Start(o); err != nil {
			return err
		}
		a.CloseAtEnd(a.embedded.Close)
		url = "unix:" + o.Socket
	}
	client, err := registry.Open(ctx, registry.Options{URL: url, Identity: a.identity, Name: "analyzer " + strconv.Itoa(os.Getpid()), Turns: a.turns, Log: a.log})
	if err != nil {
		return err
	}
	a.registry = client
	a.CloseAtEnd(func() error { client.Close(); return nil })
	return nil
}

// listen opens the sockets: everybody may connect to that of this machine, and
// is known there.
func (a *analyzerService) listen(ctx context.Context) error {
	path := filepath.Join(a.settings.runDir, ServiceSocket)
	lis, err := peercred.Listen(path)
	if err != nil {
		return err
	}
	a.listeners = append(a.listeners, lis)
	if err := unixmsg.CheckCloseAll(); err != nil {
		a.log.Warn("users can keep this service waiting", "error", err)
	}
	for _, address := range a.settings.listen {
		lis, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		a.listeners = append(a.listeners, lis)
	}
	return nil
}

// record says who this Analyzer is and where it is reached.
func (a *analyzerService) record() *attunev1.AnalyzerRecord {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	id, err := analyzerID(a.settings.stateDir, host)
	if err != nil {
		a.log.Warn("the Analyzer's id is not kept: started again, it has to wait for its registrations", "error", err)
	}
	now := time.Now()
	r := &attunev1.AnalyzerRecord{
		Id: id, Host: host,
		Version: buildinfo.Get().Version, StartedUnixNano: now.UnixNano(), Addresses: a.settings.advertise,
	}
	for _, lis := range a.listeners {
		switch at := lis.Addr().(type) {
		case *net.UnixAddr:
			r.Addresses = append(r.Addresses, "unix:"+at.Name)
		case *net.TCPAddr:
			if len(a.settings.advertise) > 0 {
				continue
			}
			name := at.IP.String()
			if at.IP.IsUnspecified() {
				name = host
			}
			r.Addresses = append(r.Addresses, net.JoinHostPort(name, strconv.Itoa(at.Port)))
		}
	}
	return r
}

// run serves until ctx ends. Sessions are then left to the next Analyzer.
func (a *analyzerService) run(ctx context.Context) error {
	calls := authn.NewCalls(a.audit.Refused) // before the audit log, which they must not fill
	server := channel.NewServer(authn.New(authn.Options{Identity: a.identity, Refused: a.audit.Refused}),
		grpc.ChainUnaryInterceptor(calls.Unary(), a.audit.Unary()), grpc.ChainStreamInterceptor(calls.Stream(), a.audit.Stream()),
		grpc.StatsHandler(a.connections()))
	channels := a.service.Register(server)
	group, inner := errgroup.WithContext(ctx)
	for _, lis := range a.listeners {
		a.log.Info("serving", "address", lis.Addr().String(), "version", buildinfo.Get().Version)
		group.Go(func() error {
			if err := server.Serve(lis); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
				return fmt.Errorf("serve %s: %w", lis.Addr(), err)
			}
			return nil
		})
	}
	group.Go(func() error { return a.serveHealth(inner) })
	group.Go(func() error { return a.export(inner) })
	group.Go(func() error { a.reloads(inner); return nil })
	if a.renewer != nil {
		group.Go(func() error { a.renewer.Run(inner); return nil })
	}
	group.Go(func() error {
		err := a.service.Run(inner) // first the sessions, then the channels
		server.Stop()
		channels.Wait()
		return err
	})
	a.Notify(daemon.SdNotifyReady)
	return group.Wait()
}

// reloads takes over what can change while it runs, at SIGHUP. Certificates are
// read when they change.
func (a *analyzerService) reloads(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.Hangup():
			a.Reloading(func() { a.reload(ctx) })
		}
	}
}

func (a *analyzerService) reload(ctx context.Context) {
	s, err := a.read()
	if err != nil {
		a.log.Error("the configuration stays as it was", "error", err)
		return
	}
	a.warnOfUsers(ctx, s)
	a.level.Set(s.level)
	a.service.SetRegistrations(s.service.Registrations)
	if !a.settings.equal(s) {
		a.log.Warn("what else has changed in the configuration needs a restart")
	}
	a.log.Info("configuration read again", "registrations", len(s.service.Registrations))
}

func (a *analyzerService) warnOfUsers(ctx context.Context, s analyzerSettings) {
	for _, unknown := range s.unknownUsers(ctx) {
		a.log.Warn("a registration is of a user whom nobody knows here", "reason", unknown)
	}
}
