// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import (
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// library is the MPI implementation that a process has mapped.
type library uint8

const (
	noMPI     library = iota
	openMPI           // has the variable
	mpich             // MPICH or a relative: nothing to set
	otherMPI          // an MPI library whose progress engine is not known
	crowdSpan = 300 * time.Millisecond
)

// libraryOf tells by the mapped objects. A rank in the environment alone is
// not enough: launchers and wrapper scripts have it too, and Open MPI's own
// daemons map libopen-pal without being ranks.
func libraryOf(p sdk.Process) library {
	switch {
	case p.Maps("libmpich*.so*"):
		return mpich
	case !p.Maps("libmpi.so*"):
		return noMPI
	case p.Maps("libopen-pal.so*"):
		return openMPI
	case p.Maps("libmpi.so.12*"): // the name of MPICH's common ABI
		return mpich
	}
	return otherMPI
}

// rank follows one MPI process.
type rank struct {
	handle  sdk.Handle
	number  int // that the launcher gave; -1: unknown
	library library
	cpus    float64
	since   time.Time
	window  *sdk.Window

	asleep   bool // samples wanted only from leastWait
	watched  bool // measure points asked for
	placed   bool // they are in place
	off      bool // the overhead budget has switched them off
	hits     uint64
	proposal string // the proposal that changed it, while in force
}

func newRank(p sdk.Process, l library, now time.Time) *rank {
	return &rank{
		handle: p.Handle, number: p.Rank, library: l, cpus: float64(p.CPUsAllowed), since: now,
		window: sdk.NewWindow(crowdSpan),
	}
}

// sample takes a round's signals.
func (r *rank) sample(s sdk.Sample) {
	r.asleep = false
	r.window.Add(s)
	if cpus, ok := s.Value(sdk.CPUsAllowed); ok && cpus > 0 {
		r.cpus = cpus
	}
}

// load is what the rank did over the last crowdSpan; false before it is known.
func (r *rank) load() (rankLoad, bool) {
	span := r.window.Latest(crowdSpan)
	if span.Duration() < crowdSpan*9/10 {
		return rankLoad{}, false
	}
	return loadOf(span, r.cpus)
}

// sleep wants no samples before the rank has to wait for a CPU, unless it does
// so already.
func (r *rank) sleep(h *sdk.Host) {
	l, known := r.load()
	if r.asleep || !r.window.Empty() && (!known || l.wait >= leastWait) {
		return
	}
	r.asleep = true
	r.window.Reset()
	h.Want(r.handle, sdk.SamplesFrom(sdk.Level{Signal: sdk.RunqueueWait, AtLeast: leastWait * 1e9}))
}

// wake wants all samples.
func (r *rank) wake(h *sdk.Host) {
	if r.asleep {
		r.asleep = false
		h.Want(r.handle, sdk.AllSamples())
	}
}

// watch asks for the measure point.
func (r *rank) watch(h *sdk.Host) {
	if r.watched {
		return
	}
	r.watched = true
	h.AddPoint(point(r.handle))
}

// unwatch gives it back.
func (r *rank) unwatch(h *sdk.Host) {
	if !r.watched {
		return
	}
	r.watched, r.placed, r.off = false, false, false
	h.RemovePoint(pointID(r.handle))
}
