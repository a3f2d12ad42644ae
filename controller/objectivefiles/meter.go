// SPDX-License-Identifier: Apache-2.0

package objectivefiles

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/objective"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Options of a Meter. All are needed.
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

// A Meter measures one objective at a time.
type Meter struct {
	options Options

	mu   sync.Mutex // guards what follows
	text string
	stop context.CancelFunc // nil: nothing is measured
}

// New returns a Meter that measures nothing.
func New(o Options) *Meter { return &Meter{options: o} }

// Measure measures an objective from now on until ctx ends, and no other; an empty one is
// none. It does not wait, and nobody does for what it started: a file system may not answer.
func (m *Meter) Measure(ctx context.Context, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if text == m.text {
		return
	}
	if m.text = text; m.stop != nil {
		m.stop()
		m.stop = nil
	}
	if text == "" {
		return
	}
	ctx, m.stop = context.WithCancel(ctx)
	go m.run(ctx, text)
}

// run measures until ctx ends.
func (m *Meter) run(ctx context.Context, text string) {
	spec, err := objective.Parse(text)
	switch {
	case err != nil:
		m.say(err.Error())
		return
	case spec.Kind != objective.Output && spec.Kind != objective.File:
		m.say(fmt.Sprintf("nodes do not measure %s:", spec.Kind))
		return
	}
	f := &files{options: m.options, spec: spec, say: m.say, looked: map[uint64]bool{}}
	source := objective.New(spec)
	defer source.Close()
	source.Run(ctx, objective.Sink{Value: m.value, Say: m.say, More: f.more})
}

func (m *Meter) value(value float64, end time.Time) {
	m.offer(&attunev1.ObjectivePart{Value: value, EndUnixNano: end.UnixNano()})
}

func (m *Meter) say(text string) { m.offer(&attunev1.ObjectivePart{Trouble: text}) }

// offer drops what there is no room for: the next value comes soon.
func (m *Meter) offer(part *attunev1.ObjectivePart) {
	m.options.Offer(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Objective{Objective: part}})
}
