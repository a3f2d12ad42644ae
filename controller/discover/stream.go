// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/track"
)

// stream is one way to learn what the processes of the node do. follow,
// unfollow and want come from any goroutine.
type stream interface {
	// mode is ModeWatch or ModePoll.
	mode() string
	// follow asks for the events of a process and what it forks from now on, as
	// of this view.
	follow(pid int, view uint32) error
	unfollow(pid int) error
	// want says which names matter; a stream may tell of others as well.
	want(names []procevent.Name) error
	// run tells of events until ctx ends (nil) or the stream fails.
	run(ctx context.Context, handle func(event)) error
	lost() uint64
	close() error
}

// way makes a stream.
type way struct {
	name string
	open func() (stream, error)
}

// waysOf lists them, the best first.
func waysOf(o Options) []way {
	poll := way{"poll", func() (stream, error) { return newPoller(o.PollInterval), nil }}
	if o.Prefer == ModePoll {
		return []way{poll}
	}
	return []way{{"bpf", openBPF}, {"connector", openConnector}, poll}
}

// stream runs the best way there is, and when it fails the next one.
func (w *Watcher) stream(ctx context.Context) error {
	var reasons error
	for _, way := range w.ways {
		err := w.listen(ctx, way, reasons)
		if ctx.Err() != nil {
			return nil
		}
		w.log.Warn("processes are found another way from now on", "without", way.name, "reason", err)
		reasons = errors.Join(reasons, fmt.Errorf("%s: %w", way.name, err))
	}
	return reasons // polling does not fail
}

// listen runs one way until it fails. reasons say why not a better one.
func (w *Watcher) listen(ctx context.Context, way way, reasons error) (err error) {
	s, err := way.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var reason string
	if reasons != nil {
		reason = reasons.Error()
	}
	if err := w.hub.use(s, reason); err != nil {
		return err
	}
	defer w.hub.leave(s)
	w.log.Info("processes are found", "mode", s.mode(), "by", way.name)
	if err := s.run(ctx, func(e event) { w.hub.event(ctx, e) }); err != nil {
		return err
	}
	return errEnded
}

// errEnded says that a stream has ended by itself.
var errEnded = errors.New("its events have ended")

// bpfStream is BPF process events: the kernel knows who is a member of which
// view, and which names matter.
type bpfStream struct{ *procevent.ProcessEvents }

// nodeRing holds the events of a burst: 1,200 of wanted names.
const nodeRing = 1 << 20

func openBPF() (stream, error) {
	events, err := procevent.New(procevent.Options{NodeWide: true, RingBytes: nodeRing})
	if err != nil {
		return nil, err
	}
	return bpfStream{events}, nil
}

func (bpfStream) mode() string { return ModeWatch }

func (b bpfStream) follow(pid int, view uint32) error { return b.AddTo(pid, view) }

func (b bpfStream) unfollow(pid int) error { return b.Remove(pid) }

func (b bpfStream) want(names []procevent.Name) error { return b.Want(names) }

func (b bpfStream) run(ctx context.Context, handle func(event)) error {
	return b.Run(ctx, func(e procevent.Event) {
		tagged := event{Event: track.EventOf(e), tagged: true, program: e.Program}
		if e.Member {
			tagged.view = e.Slot
		}
		handle(tagged)
	})
}

func (b bpfStream) lost() uint64 {
	events, members := b.Lost()
	return events + members
}

func (b bpfStream) close() error { return b.Close() }

// connectorStream is the kernel's process connector: everything that every
// process does.
type connectorStream struct{ track.Source }

func openConnector() (stream, error) {
	source, err := track.NewConnector()
	if err != nil {
		return nil, err
	}
	return connectorStream{source}, nil
}

func (connectorStream) mode() string { return ModeWatch }

func (connectorStream) follow(int, uint32) error { return nil }

func (connectorStream) unfollow(int) error { return nil }

func (connectorStream) want([]procevent.Name) error { return nil }

func (c connectorStream) run(ctx context.Context, handle func(event)) error {
	return c.Run(ctx, func(e track.Event) { handle(event{Event: e}) })
}

func (c connectorStream) lost() uint64 { return c.Lost() }

func (c connectorStream) close() error { return c.Close() }
