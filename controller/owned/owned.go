// SPDX-License-Identifier: Apache-2.0

// Package owned measures the owner's objective (docs/reference/objective.md) of a session
// where the session's processes on this node write it to files. Whoever runs it may have more
// rights than the owner, so nothing is looked up by a path: read is what a process of the
// session has open, and only if it is the session's user's (docs/design/0076).
//
// An [Owned] may be used from any goroutine.
package owned

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/objective"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Options of Owned. All are needed.
type Options struct {
	// Members are the processes.
	Members *member.Set
	// User is whose files are read, by id.
	User uint32
	// Foreign is why a process must be left alone; nil: it need not.
	Foreign func(pid int) error
	// Offer takes a message to the Analyzer if there is room. It must not wait.
	Offer func(*attunev1.PublishRequest) bool
}

// Owned measures one objective at a time.
type Owned struct {
	options Options

	mu   sync.Mutex // guards what follows
	text string
	stop context.CancelFunc // nil: nothing is measured
}

// New returns an Owned that measures nothing.
func New(o Options) *Owned { return &Owned{options: o} }

// Measure measures an objective from now on until ctx ends, and no other; an empty one is
// none. It does not wait, and nobody does for what it started: a file system may not answer.
func (o *Owned) Measure(ctx context.Context, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text == o.text {
		return
	}
	if o.text = text; o.stop != nil {
		o.stop()
		o.stop = nil
	}
	if text == "" {
		return
	}
	ctx, o.stop = context.WithCancel(ctx)
	go o.run(ctx, text)
}

// run measures until ctx ends.
func (o *Owned) run(ctx context.Context, text string) {
	spec, err := objective.Parse(text)
	switch {
	case err != nil:
		o.say(err.Error())
		return
	case spec.Kind != objective.Output && spec.Kind != objective.File:
		o.say(fmt.Sprintf("nodes do not measure %s:", spec.Kind))
		return
	}
	f := &files{options: o.options, spec: spec, say: o.say, looked: map[uint64]bool{}}
	source := objective.New(spec)
	defer source.Close()
	source.Run(ctx, objective.Sink{Value: o.value, Say: o.say, More: f.more})
}

func (o *Owned) value(value float64, end time.Time) {
	o.offer(&attunev1.ObjectivePart{Value: value, EndUnixNano: end.UnixNano()})
}

func (o *Owned) say(text string) { o.offer(&attunev1.ObjectivePart{Trouble: text}) }

// offer drops what there is no room for: the next value comes soon.
func (o *Owned) offer(part *attunev1.ObjectivePart) {
	o.options.Offer(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Objective{Objective: part}})
}
