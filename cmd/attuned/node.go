// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/capability"
	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/controller/node"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/instance"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/rundir"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// service is attuned as it runs on a node.
type service struct {
	settings settings
	args     []string // for a reload
	level    *slog.LevelVar
	log      *slog.Logger
	policy   atomic.Pointer[policy.Policy]
}

// serveNode serves the node until a signal. A second signal ends it at once:
// what is then still changed stays in the journals for the next start.
func serveNode(s settings, args []string, level *slog.LevelVar, log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	lock, err := alone(s.runDir)
	if err != nil {
		return err
	}
	defer lock.Close()
	a := &service{settings: s, args: args, level: level, log: log}
	a.loadPolicy()
	go a.reloadLoop(ctx)
	identity, err := s.identity(log)
	if err != nil {
		return err
	}
	client, err := registry.Open(ctx, registry.Options{URL: s.registry, Identity: identity, Name: "attuned " + s.name, Log: log})
	if err != nil {
		return err
	}
	defer client.Close()
	n, err := node.New(a.nodeConfig(ctx, client, identity))
	if err != nil {
		return err
	}
	listener, err := node.Listen(filepath.Join(s.runDir, "attuned.sock"))
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() {
		stop() // from now on a signal has its ordinary effect
		a.notify(daemon.SdNotifyStopping)
	})
	log.Info("serving", "node", s.name, "registry", s.registry, "version", buildinfo.Get().Version)
	a.notify(daemon.SdNotifyReady)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.ServeLocal(ctx, listener) })
	group.Go(func() error { return n.Run(ctx) })
	return group.Wait()
}

// alone locks the node for this process.
func alone(runDir string) (io.Closer, error) {
	const mode = 0o755 // users pass through to their gates
	if err := os.MkdirAll(runDir, mode); err != nil {
		return nil, fmt.Errorf("directory of sockets: %w", err)
	}
	lock, err := instance.Lock(filepath.Join(runDir, "attuned.lock"))
	if errors.Is(err, instance.ErrTaken) {
		err = fmt.Errorf("%w: it serves this node; stop it first, or give this one its own --%s and --%s", err, keyRunDir, keyStateDir)
	}
	return lock, err
}

func (a *service) nodeConfig(ctx context.Context, client *registry.Client, identity *pki.Identity) node.Config {
	s := a.settings
	return node.Config{
		ID: fmt.Sprintf("%s-%d-%d", s.name, os.Getpid(), time.Now().Unix()), Host: s.name, Version: buildinfo.Get().Version,
		RunDir: s.runDir, StateDir: s.stateDir, LibraryPath: installLibrary(s.stateDir, a.log), UseBPF: !s.noBPF,
		Discover: discover.Options{Prefer: a.find(), PollInterval: s.pollInterval, Batch: s.batch},
		Registry: client, Credentials: authn.New(authn.Options{Identity: identity, Admit: isAnalyzer}),
		Policy: a.policy.Load, Kept: a.openKept, Budget: s.budget / 100, Hidden: prober(),
		Digests:    objfile.NewDigests(objfile.DigestsOptions{Dir: rundir.Current().DigestDir()}),
		Mechanisms: capability.Mechanisms(capability.Probe(ctx, capability.Options{Fast: true})),
		Log:        a.log,
	}
}

// find is how processes are found.
func (a *service) find() string {
	if a.settings.noBPF {
		return discover.ModePoll
	}
	return a.settings.find
}

// isAnalyzer lets a service of the site be an Analyzer, and where attuned is a
// user's own that user's.
func isAnalyzer(p *attunev1.Principal) error {
	if p.GetRole() == attunev1.Role_ROLE_NODE || os.Geteuid() != 0 && authn.OwnAndRoot(p) == nil {
		return nil
	}
	return fmt.Errorf("%s has not the role node: it is no service of this site", p.GetName())
}

// keptPatience is how long somebody else may have the journal of kept changes.
const keptPatience = 2 * time.Second

// openKept opens the journal where attune undo looks.
func (a *service) openKept(ctx context.Context) (*actuate.Kept, error) {
	dir, err := rundir.Current().LastingStateDir()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname() // as attune undo does, whatever the node's name is
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, keptPatience)
	defer cancel()
	return actuate.OpenKept(ctx, dir, host)
}

// loadPolicy reads the site's policy. One that cannot be read denies everything.
func (a *service) loadPolicy() {
	p, err := policy.Load(a.settings.policy)
	if err != nil {
		a.log.Error("nothing is touched", "error", err)
	}
	a.policy.Store(p)
}

// reloadLoop takes what can change while attuned runs, at SIGHUP: the policy and
// the log level. Certificates are read when they change.
func (a *service) reloadLoop(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, unix.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			a.notify(daemon.SdNotifyReloading)
			a.reload()
			a.notify(daemon.SdNotifyReady)
		}
	}
}

func (a *service) reload() {
	s, err := load(a.args, io.Discard)
	if err != nil {
		a.log.Error("the configuration stays as it was", "error", err)
		return
	}
	a.level.Set(s.level)
	a.loadPolicy()
	before := a.settings
	before.level = s.level
	if !before.equal(s) {
		a.log.Warn("what else has changed in the configuration needs a restart")
	}
	a.log.Info("reloaded: policy and log level", "level", s.level)
}

// notify tells systemd how things are; without it nobody listens.
func (a *service) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		a.log.Debug("tell systemd", "error", err)
	}
}
