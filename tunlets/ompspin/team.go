// SPDX-License-Identifier: Apache-2.0

package ompspin

import (
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/openmp"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// readAgain is how long it counts as known where the threads of a team may run:
// somebody may bind them to as many other CPUs.
const readAgain = 5 * time.Second

// team follows one process with libgomp.
type team struct {
	openmp.Team

	regions regions   // since counting began
	places  places    // where its threads may run, as last read
	readAt  time.Time // when that was; zero: not yet
	found   places    // of the reading that is under way; nil: none is
}

// load is what the team did over [openmp.Span]; false before it is known.
func (t *team) load() (load, bool) {
	l, ok := t.Load()
	return load(l), ok
}

// lookAt has it read where the threads may run, unless that is known: anew when they may
// run on more CPUs than before or fewer, and from time to time.
func (t *team) lookAt(h *sdk.Host) {
	l, ok := t.load()
	changed := t.places != nil && !t.placed(l)
	if !ok || t.found != nil || !changed && h.Now().Sub(t.readAt) < readAgain {
		return
	}
	t.found = places{}
	h.WantDetails(t.Handle, sdk.DetailThreads)
}

// placed says whether it is known where the threads may run: what has been read is as
// many CPUs as the process may use.
func (t *team) placed(l load) bool { return float64(len(t.places)) == l.CPUs }

// settle takes where threads may run, until it is known of all, or cannot be read. What is
// more than the process may use was read before somebody bound it: the reading begins anew.
func (t *team) settle(h *sdk.Host, threads *sdk.ThreadDetails) {
	if t.found == nil {
		return
	}
	t.found.add(threads)
	l, ok := t.load()
	switch cpus := float64(len(t.found)); {
	case threads.Error != "":
		t.places, t.readAt = nil, h.Now()
		t.stopReading(h)
	case ok && cpus == l.CPUs:
		t.places, t.readAt = t.found, h.Now()
		t.stopReading(h)
	case ok && cpus > l.CPUs:
		t.found = places{}
	}
}

// stopReading gives back what lookAt has asked for.
func (t *team) stopReading(h *sdk.Host) {
	if t.found != nil {
		t.found = nil
		h.WantDetails(t.Handle)
	}
}

// watch asks for the measure points, and for where its threads may run.
func (t *team) watch(h *sdk.Host) {
	t.regions, t.places, t.readAt = regions{}, nil, time.Time{}
	t.lookAt(h)
	t.Watch(h, t.Runtime.Regions(t.Handle), t.Runtime.Durations(t.Handle))
}

// Rest wants no samples before the team waits for a CPU, unless it does already,
// or is looked after since it was changed.
func (t *team) Rest(h *sdk.Host) {
	switch {
	case t.Proposal != "":
	case t.GaveUp:
		h.Want(t.Handle, sdk.NoSamples())
	default:
		l, known := t.load()
		t.Doze(h, l.Wait, known)
		if t.Window.Empty() { // it dozes: a reading would not end before there is a load again
			t.stopReading(h)
		}
	}
}
