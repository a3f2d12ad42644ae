// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/child"
	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/internal/queue"
	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Node is the Application Controller of a node.
type Node struct {
	*local

	config        Config
	workers       *workers
	notes         *notes
	owners        *owners
	registrations *registrations
	sessions      *sessions
	rules         rules
	watcher       *discover.Watcher
	maker         *maker
	children      *child.Pool
	journals      *journals
	recorder      *recorder
	mainSwitch    *mainSwitch
	health        *health
}

// New prepares the node's directories. The caller calls Run, once.
func New(config Config) (*Node, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	if err := makeDirs(config); err != nil {
		return nil, err
	}
	log, touched := config.Log.With("component", "node"), queue.NewBell()
	n := &Node{config: config, workers: new(workers), owners: newOwners(), notes: &notes{changed: touched.Ring}}
	n.registrations = &registrations{
		host: config.Host, credentials: config.Credentials, analyzers: config.Registry.Analyzers, tunlets: config.Registry.Tunlets,
		workers: n.workers, notes: n.notes, log: log, telling: make(map[string]bool),
	}
	n.sessions = newSessions(n.workers, config.Metrics, log)
	n.rules = rules{policy: config.Policy, off: n.sessions.switchedOff}
	options := config.Discover
	options.Handler = found{rules: n.rules, sessions: n.sessions, notes: n.notes, log: log}
	options.Digests, options.Readers, options.Turns, options.Log = config.Digests, config.Readers, config.Turns, config.Log
	options.Changed = touched.Ring
	var err error
	if n.watcher, err = discover.New(options); err != nil {
		return nil, err
	}
	audit := auditor{audit: config.Audit, log: log}
	config.Children.Log, config.Children.Metrics = config.Log, config.Metrics
	config.Children.Late = func() { n.journals.restore(context.Background(), false) }
	n.children = child.NewPool(config.Children)
	n.journals = &journals{dir: config.journals(), holdTime: config.HoldTime, children: n.children, sessions: n.sessions, notes: n.notes, log: log}
	n.maker = &maker{
		config: config, owners: n.owners, rules: n.rules, registrations: n.registrations, auditor: audit, watcher: n.watcher,
		create: func(c controller.Config) (controlled, error) { return child.New(c, n.children) },
	}
	n.sessions.serve = func(ctx context.Context, s *session) {
		(&server{
			session: s, sessions: n.sessions, registrations: n.registrations, maker: n.maker, notes: n.notes,
			turns: config.Turns, restore: func(ctx context.Context) { n.journals.restore(ctx, false) }, touch: touched.Ring,
		}).run(ctx)
	}
	n.recorder = &recorder{
		config: config, watcher: n.watcher, sessions: n.sessions, notes: n.notes,
		started: time.Now(), touched: touched,
	}
	n.mainSwitch = &mainSwitch{turns: config.Turns, off: config.Off, sessions: n.sessions, auditor: audit, notes: n.notes, log: log}
	n.health = &health{turns: config.Turns, dir: config.StateDir, notes: n.notes, log: log}
	config.Metrics.Read(figures{status: n.watcher.Status, sessions: n.sessions, children: n.children, health: n.health}.read)
	n.local = &local{
		metrics: config.Metrics, policy: config.Policy,
		asks: quota.NewRate[uint32](asksAtOnce, asksEvery),
		log:  log, status: n.watcher.Status, connected: config.Registry.Connected, standing: config.Turns.Standing, sessions: n.sessions, recorder: n.recorder,
		handover: &handover{n.rules, n.sessions, n.registrations, n.notes, n.watcher.Account, log}, auditor: audit,
	}
	return n, nil
}

// makeDirs makes what other users pass through, and takes away what a node
// before has left.
func makeDirs(config Config) error {
	if err := os.RemoveAll(config.gates()); err != nil {
		return fmt.Errorf("start gates of before: %w", err)
	}
	for dir, mode := range map[string]os.FileMode{config.gates(): 0o711, config.StateDir: 0o711} {
		err := os.MkdirAll(dir, mode)
		if err == nil {
			err = os.Chmod(dir, mode) // whatever the umask
		}
		if err != nil {
			return fmt.Errorf("directory of the node: %w", err)
		}
	}
	return nil
}

// Run finds and serves processes until ctx ends, then gives everything back.
// First it restores what a node before has left changed.
func (n *Node) Run(ctx context.Context) error {
	outlive := context.WithoutCancel(ctx) // sessions outlive discovery, and their processes sessions
	stop := n.runChildren(outlive)
	defer stop()
	n.journals.removeOld()
	n.maker.left.Store(n.journals.restore(ctx, false))
	n.mainSwitch.look()
	n.workers.open(outlive)
	defer func() {
		holds := n.config.Restarts() && n.journals.hold(outlive)
		n.workers.end()
		if !holds { // nor does what an earlier one has held stay
			ctx, cancel := context.WithTimeout(outlive, stopTimeout)
			defer cancel()
			n.journals.restore(ctx, true)
		}
	}()
	group, ctx := errgroup.WithContext(ctx)
	if n.maker.left.Load() {
		group.Go(func() error { n.journals.seeToHeld(ctx); n.maker.left.Store(false); return nil })
	}
	group.Go(func() error { n.journals.restoreOwed(ctx); return nil })
	group.Go(func() error { return n.watcher.Run(ctx) })
	group.Go(func() error { return ended(ctx, n.config.Registry.Watch(ctx, n.setView)) })
	group.Go(func() error {
		return ended(ctx, n.config.Registry.Announce(ctx, n.recorder.touched, n.recorder.record))
	})
	group.Go(func() error { return ended(ctx, n.config.Registry.ServeLocate(ctx, n.config.ID, n.recorder.locate)) })
	group.Go(func() error { n.health.watch(ctx); return nil })
	group.Go(func() error { n.mainSwitch.watch(ctx); return nil })
	return group.Wait()
}

// PolicyChanged says that [Config.Policy] is another one from now on, so that the site is
// told of its trouble or that there is none any more. It is safe for concurrent use.
func (n *Node) PolicyChanged() { n.recorder.touched.Ring() }

// ended is the error of a part that ended by itself.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// runChildren runs the processes of sessions until stop is called, which waits for it.
func (n *Node) runChildren(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { n.children.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// setView takes what is registered now.
func (n *Node) setView(view registry.View) {
	n.registrations.set(view.Registrations)
	n.owners.set(view.Owners)
	n.watcher.SetRegistrations(toFind(view.Registrations))
}

// toFind returns the registrations whose processes have to be found. Those of a job that is
// handed over are given, and there may be very many of these.
func toFind(all map[string]*attunev1.Registration) (list []*attunev1.Registration) {
	for _, r := range all {
		if r.GetExecutable() != registry.HandedOver {
			list = append(list, r)
		}
	}
	return list
}
