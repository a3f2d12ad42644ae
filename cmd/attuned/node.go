// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"

	"github.com/attune-hpc/attune/controller/capability"
	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/controller/node"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/audit"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/instance"
	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/offswitch"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/renew"
	"github.com/attune-hpc/attune/internal/served"
	"github.com/attune-hpc/attune/internal/turns"
	"github.com/attune-hpc/attune/internal/unixmsg"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// service is attuned as it runs on a node.
type service struct {
	*served.Frame

	settings settings
	args     []string // for a reload
	level    *slog.LevelVar
	log      *slog.Logger
	policy   atomic.Pointer[policy.Policy]
	since    atomic.Int64 // Unix time since when the policy can be used, or cannot
	metrics  *metrics.Registry
	export   func(context.Context) error // of metrics
	turns    *turns.Board
	restart  *restart
	renewer  *renew.Renewer // nil: nobody renews the certificate
	node     *node.Node
	listener net.Listener
}

// serveNode serves the node until a signal. A second signal ends it at once:
// what is then still changed stays in the journals for the next start.
func serveNode(s settings, args []string, level *slog.LevelVar, log *slog.Logger) error {
	a := &service{
		Frame: served.New(log), settings: s, args: args, level: level, log: log,
		turns: turns.New(), metrics: metrics.New(metrics.Node), restart: newRestart(),
	}
	defer a.restart.stop()
	return a.Serve(context.Background(), a.open, a.run)
}

// run serves until ctx ends.
func (a *service) run(ctx context.Context) error {
	a.log.Info("serving", "node", a.settings.name, "registry", a.settings.registry, "version", buildinfo.Get().Version)
	a.Notify(daemon.SdNotifyReady)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.node.ServeLocal(ctx, a.listener) })
	group.Go(func() error { return a.node.Run(ctx) })
	group.Go(func() error { return a.export(ctx) })
	group.Go(func() error { a.reloadLoop(ctx, a.node.PolicyChanged); return nil })
	group.Go(func() error { a.watchdog(ctx); return nil })
	if a.renewer != nil {
		group.Go(func() error { a.renewer.Run(ctx); return nil })
	}
	return group.Wait()
}

// open makes everything that can be refused.
func (a *service) open(ctx context.Context) error {
	s := a.settings
	lock, err := alone(s.runDir)
	if err != nil {
		return err
	}
	a.CloseAtEnd(lock.Close)
	a.loadPolicy()
	identity, err := a.openIdentity()
	if err != nil {
		return err
	}
	auditLog, err := audit.Open(audit.Options{Path: s.audit, Log: a.log})
	if err != nil {
		return err
	}
	a.CloseAtEnd(auditLog.Close)
	client, err := registry.OpenNode(ctx, registry.Options{URL: s.registry, Identity: identity, Name: "attuned " + s.name, Turns: a.turns, Log: a.log})
	if err != nil {
		return err
	}
	a.CloseAtEnd(func() error { client.Close(); return nil })
	a.metrics.ReadCommon(metrics.Common{Identity: identity, Connected: client.Connected, Audit: auditLog, Turns: a.turns, StateDir: s.stateDir})
	a.metrics.Read(a.readPolicy)
	config := a.nodeConfig(ctx, client, identity)
	config.Audit = auditLog
	if a.node, err = node.New(config); err != nil {
		return err
	}
	if a.listener, err = peercred.Listen(filepath.Join(s.runDir, node.SocketName)); err != nil {
		return err
	}
	if err := unixmsg.CheckCloseAll(); err != nil {
		a.log.Warn("users can keep this service and start gates waiting", "error", err)
	}
	a.export, err = a.metrics.Open(ctx, s.metricsListen, s.metricsFile, a.log)
	return err
}

// openIdentity makes the state directory, and opens who this node is at the registry, nil if
// that asks for no certificate, with what it remembers there.
func (a *service) openIdentity() (*pki.Identity, error) {
	s := a.settings
	identity, err := s.identity(a.log)
	if err != nil {
		return nil, err
	}
	if s.issuer != "" {
		if a.renewer, err = renew.ByService(s.issuer, identity, a.log); err != nil {
			return nil, err
		}
	}
	const private = 0o711 // as the node has it: users pass to the library
	if err := instance.Directory(s.stateDir, private); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if identity != nil {
		err = identity.Remember(filepath.Join(s.stateDir, "revoked.json"))
	}
	return identity, err
}

// alone locks the node for this process.
func alone(runDir string) (io.Closer, error) {
	const mode = 0o755 // users pass through to their gates
	if err := instance.Directory(runDir, mode); err != nil {
		return nil, fmt.Errorf("directory of sockets: %w", err)
	}
	lock, err := instance.Lock(filepath.Join(runDir, "attuned.lock"))
	if errors.Is(err, instance.ErrTaken) {
		err = fmt.Errorf("%w: it serves this node; stop it first, or give this one its own --%s and --%s", err, keyRunDir, keyStateDir)
	}
	return lock, err
}

func (a *service) nodeConfig(ctx context.Context, client *registry.Node, identity *pki.Identity) node.Config {
	s := a.settings
	return node.Config{
		ID: fmt.Sprintf("%s-%d-%d", s.name, os.Getpid(), time.Now().Unix()), Host: s.name, Version: buildinfo.Get().Version,
		RunDir: s.runDir, StateDir: s.stateDir, LibraryPath: installLibrary(s.stateDir, a.log), UseBPF: !s.noBPF,
		Discover: discover.Options{Prefer: a.find(), PollInterval: s.pollInterval, Batch: s.batch},
		Registry: client, Credentials: authn.New(authn.Options{Identity: identity, Admit: isAnalyzer}),
		Policy: a.policy.Load, Off: offswitch.Switch(s.off).Off, Restarts: a.restart.announced, HoldTime: s.holdTime, Budget: s.budget / 100, Digests: digests(),
		Mechanisms: capability.Mechanisms(capability.Probe(ctx, capability.Options{Fast: true})),
		Readers:    a.readers(),
		Turns:      a.turns,
		Metrics:    a.metrics,
		Log:        a.log,
	}
}

// readers are the processes that read what may block.
func (a *service) readers() *readers.Pool {
	pool := readers.New(readers.Options{Log: a.log})
	a.CloseAtEnd(pool.Close)
	return pool
}

// find is how processes are found.
func (a *service) find() string {
	if a.settings.noBPF {
		return discover.ModePoll
	}
	return a.settings.find
}

// isAnalyzer lets the site's be an Analyzer, root of this machine, whom the kernel
// names, and where attuned is a user's own that user.
func isAnalyzer(p *attunev1.Principal) error {
	root := p.GetRole() == attunev1.Role_ROLE_NODE && p.GetUid() == 0 // no certificate says so
	if root || p.GetRole() == attunev1.Role_ROLE_ANALYZER || os.Geteuid() != 0 && authn.OwnAndRoot(p) == nil {
		return nil
	}
	return fmt.Errorf("%s has not the role analyzer: it is no Analyzer of this site", p.GetName())
}
