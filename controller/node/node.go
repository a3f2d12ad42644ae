// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/actuate/kinds"
	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/internal/queue"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Node is the Application Controller of a node.
type Node struct {
	config  Config
	log     *slog.Logger
	watcher *discover.Watcher
	owners  *owners
	notes   *notes
	started time.Time
	touched queue.Bell // rung when the record is to be announced anew
	// control makes the controller of a session, analyzers asks for those of the
	// site.
	control   func(controller.Config) (controlled, error)
	analyzers func(context.Context) ([]*attunev1.AnalyzerRecord, error)

	mu       sync.Mutex // guards what follows; held while controllers are asked what they have
	ctx      context.Context
	closed   bool   // no more sessions
	off      string // why Attune is switched off; empty: it is not
	view     registry.View
	sessions map[sessionKey]*session
	over     map[sessionKey]time.Time // since when the Analyzer does not want them
	// registering are the registrations that an Analyzer is being told of.
	registering map[string]bool
	number      int            // of sessions so far
	work        sync.WaitGroup // their goroutines
}

// New prepares the node's directories. The caller calls Run, once.
func New(config Config) (*Node, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	n := &Node{
		config: config, log: config.Log.With("component", "node"), owners: newOwners(), started: time.Now(),
		touched: queue.NewBell(), sessions: make(map[sessionKey]*session), over: make(map[sessionKey]time.Time),
		registering: make(map[string]bool), analyzers: config.Registry.Analyzers,
		control: func(c controller.Config) (controlled, error) { return controller.New(c) },
	}
	n.notes = &notes{changed: n.touch}
	if err := n.makeDirs(); err != nil {
		return nil, err
	}
	options := config.Discover
	options.Handler, options.Digests, options.Log = found{n}, config.Digests, config.Log
	var err error
	n.watcher, err = discover.New(options)
	return n, err
}

// gates is the directory of the sessions' start gates.
func (n *Node) gates() string { return filepath.Join(n.config.RunDir, "gates") }

// makeDirs makes what other users pass through, and takes away what a node
// before has left.
func (n *Node) makeDirs() error {
	if err := os.RemoveAll(n.gates()); err != nil {
		return fmt.Errorf("start gates of before: %w", err)
	}
	for dir, mode := range map[string]os.FileMode{n.gates(): 0o711, n.config.StateDir: 0o711} {
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

// journals is the directory of the sessions' undo journals.
func (n *Node) journals() string { return filepath.Join(n.config.StateDir, "journals") }

// Run finds and serves processes until ctx ends, then gives everything back.
// First it restores what a node before has left changed.
func (n *Node) Run(ctx context.Context) error {
	n.restore()
	n.lookAtSwitch()
	sessions, stop := context.WithCancel(context.WithoutCancel(ctx)) // they outlive discovery
	defer stop()
	n.mu.Lock()
	n.ctx = sessions
	n.mu.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.watcher.Run(ctx) })
	group.Go(func() error { return ended(ctx, n.config.Registry.Watch(ctx, n.setView)) })
	group.Go(func() error { return n.announce(ctx) })
	group.Go(func() error { return ended(ctx, n.config.Registry.ServeLocate(ctx, n.config.Host, n.locate)) })
	group.Go(func() error { n.watchTroubles(ctx); return nil })
	group.Go(func() error { n.watchSwitch(ctx); return nil })
	err := group.Wait()
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	stop()
	n.work.Wait()
	return err
}

// ended is the error of a part that ended by itself.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// restore takes back what a node that died has left changed.
func (n *Node) restore() {
	restored, err := kinds.All(kinds.Options{}).Restore(n.journals())
	if err != nil {
		n.notes.trouble("restore after an earlier start: " + err.Error())
		n.log.Warn("restore after an earlier start", "error", err)
	}
	for _, r := range restored {
		n.log.Warn("change of an earlier start", "undone", r.Err == nil, "change", r.Change, "knob", r.Knob, "pid", r.PID, "error", r.Err)
	}
}

// setView takes what is registered now.
func (n *Node) setView(view registry.View) {
	n.mu.Lock()
	n.view = view
	n.mu.Unlock()
	n.owners.set(view.Owners)
	n.watcher.SetRegistrations(slices.Collect(maps.Values(view.Registrations)))
}

// registered says whether a registration is there.
func (n *Node) registered(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.view.Registrations[id] != nil
}

// errClosed refuses what comes at the end.
var errClosed = errors.New("attuned is ending")

// list returns the sessions, in the order of their beginning.
func (n *Node) list() []*session {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.SortedFunc(maps.Values(n.sessions), func(a, b *session) int { return a.number - b.number })
}

// Ready says what is missing before processes are found; nil: nothing.
func (n *Node) Ready() error {
	if n.watcher.Status().Mode == "" {
		return errors.New("processes are not watched yet")
	}
	return nil
}

// Record is what the node has, as it announces it.
func (n *Node) Record() *attunev1.ControllerRecord { return n.record() }
