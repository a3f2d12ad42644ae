// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
)

// bpfSource makes a Source of BPF process events.
type bpfSource struct{ *procevent.ProcessEvents }

// FromBPF makes a Source of BPF process events, which it closes.
func FromBPF(events *procevent.ProcessEvents) Source { return bpfSource{events} }

// Run implements Source.
func (b bpfSource) Run(ctx context.Context, handle func(Event)) error {
	return b.ProcessEvents.Run(ctx, func(e procevent.Event) { handle(EventOf(e)) })
}

// EventOf makes an Event of one of BPF.
func EventOf(e procevent.Event) Event {
	// The kernel's part follows descendants by itself and tells of the exit
	// of the last thread only.
	event := Event{
		PID: e.PID, Parent: e.Parent, Member: true, Last: true, Time: e.Time,
		StartTicks: e.StartTicks(), UID: e.UID, HasUID: true, Command: e.Command,
	}
	switch e.Kind {
	case procevent.EventFork:
		event.Kind = Fork
	case procevent.EventExec:
		event.Kind, event.Program = Exec, e.Program
	case procevent.EventExit:
		event.Kind, event.Status, event.HasStatus, event.Taken = Exit, int32(e.Status), true, e.Taken
	}
	return event
}
