// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"

	"github.com/attune-hpc/attune/controller/bpf"
)

// bpfSource makes a Source of BPF process events.
type bpfSource struct{ *bpf.ProcessEvents }

// FromBPF makes a Source of BPF process events, which it closes.
func FromBPF(events *bpf.ProcessEvents) Source { return bpfSource{events} }

// Run implements Source.
func (b bpfSource) Run(ctx context.Context, handle func(Event)) error {
	return b.ProcessEvents.Run(ctx, func(e bpf.Event) { handle(EventOf(e)) })
}

// Lost implements Source. A child that the kernel could not follow is an event
// lost, too.
func (b bpfSource) Lost() uint64 {
	events, members := b.ProcessEvents.Lost()
	return events + members
}

// EventOf makes an Event of one of BPF.
func EventOf(e bpf.Event) Event {
	// The kernel's part follows descendants by itself and tells of the exit
	// of the last thread only.
	event := Event{
		PID: e.PID, Parent: e.Parent, Member: true, Last: true, Time: e.Time,
		StartTicks: e.StartTicks(), UID: e.UID, HasUID: true, Command: e.Command,
	}
	switch e.Kind {
	case bpf.EventFork:
		event.Kind = Fork
	case bpf.EventExec:
		event.Kind, event.Program = Exec, e.Program
	case bpf.EventExit:
		event.Kind, event.Status, event.HasStatus = Exit, int32(e.Status), true
	}
	return event
}
