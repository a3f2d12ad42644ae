// SPDX-License-Identifier: Apache-2.0

package ompthreads

import (
	"github.com/attune-hpc/attune/tunlets/kit/openmp"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// team follows one process with an OpenMP run-time.
type team struct {
	openmp.Team

	threads uint64  // that the proposal gives it
	before  float64 // CPUs that it could use then
	sharers int     // processes that they were divided by
	// freed says that a process that was changed with it has ended since, so that
	// there may be room: the level of Rest would not tell.
	freed bool
}

// load is what the process did over [openmp.Span]; false before it is known.
func (t *team) load() (load, bool) {
	l, ok := t.Load()
	return load(l), ok
}

// crowded says that the process has the symptom.
func (t *team) crowded() bool {
	l, ok := t.load()
	return ok && l.crowded()
}

// cpus is how many CPUs it may use; 0 where that is not known.
func (t *team) cpus() float64 {
	cpus, _ := t.Window.Last(sdk.CPUsAllowed)
	return cpus
}

// watch asks for the measure point.
func (t *team) watch(h *sdk.Host) { t.Watch(h, t.Runtime.Regions(t.Handle)) }

// Rest wants no samples before there may be something to do: before the threads
// wait for a CPU, or, where the number of threads was changed, before the process
// may use more CPUs. One that waits already, and that nothing helps, is left
// alone for good.
func (t *team) Rest(h *sdk.Host) {
	switch {
	case t.GaveUp:
		h.Want(t.Handle, sdk.NoSamples())
	case t.Proposal != "" && t.freed: // until it is known whether there is room
	case t.Proposal != "":
		h.Want(t.Handle, sdk.SamplesFrom(sdk.Level{Signal: sdk.CPUsAllowed, AtLeast: t.before + 1}))
	default:
		l, known := t.load()
		t.Doze(h, l.Wait, known)
	}
}
