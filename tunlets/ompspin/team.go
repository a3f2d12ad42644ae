// SPDX-License-Identifier: Apache-2.0

package ompspin

import (
	"github.com/attune-hpc/attune/tunlets/kit/openmp"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// team follows one process with libgomp.
type team struct {
	openmp.Team

	regions regions // since counting began
	places  places  // that have been read since then
	reading bool    // more of them are
}

// load is what the team did over [openmp.Span]; false before it is known.
func (t *team) load() (load, bool) {
	span, ok := t.Latest()
	if !ok {
		return load{}, false
	}
	return loadOf(t.Window, span)
}

// lookAt has it read where the threads may run, unless that is known.
func (t *team) lookAt(h *sdk.Host) {
	if l, ok := t.load(); !t.reading && ok && !t.placed(l) {
		t.reading = true
		h.WantDetails(t.Handle, sdk.DetailThreads)
	}
}

// placed says whether it is known where the threads may run: what has been read is as
// many CPUs as the process may use.
func (t *team) placed(l load) bool { return float64(len(t.places)) == l.cpus }

// settle takes where threads may run, until it is known of all, or cannot be read.
func (t *team) settle(h *sdk.Host, threads *sdk.ThreadDetails) {
	if t.places == nil {
		t.places = places{}
	}
	t.places.add(threads)
	if l, ok := t.load(); t.reading && (threads.Error != "" || ok && t.placed(l)) {
		t.reading = false
		h.WantDetails(t.Handle)
	}
}

// watch asks for the measure points, and for where its threads may run.
func (t *team) watch(h *sdk.Host) {
	t.regions, t.places = regions{}, nil
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
		t.Doze(h, l.wait, known)
	}
}
