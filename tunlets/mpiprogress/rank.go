// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import (
	"fmt"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// crowdSpan is over how long a rank's load is taken.
const crowdSpan = 300 * time.Millisecond

// crowdedRank is reached by a rank that has to wait for a CPU.
func crowdedRank() sdk.Level {
	return sdk.Level{Signal: sdk.RunqueueWait, AtLeast: leastWait * float64(time.Second)}
}

// rank follows one MPI process.
type rank struct {
	handle  sdk.Handle
	number  int // that the launcher gave; -1: unknown
	library library
	object  string // pattern of the library with the MPI calls
	cpus    float64
	window  *sdk.Window

	asleep   bool      // samples wanted only from leastWait
	watched  bool      // measure points asked for
	since    time.Time // of the first sample after that; zero: there was none
	placed   bool      // they are in place
	off      bool      // the overhead budget has switched them off
	hits     uint64
	proposal string // the proposal that changed it, while in force
}

func newRank(p sdk.Process, l library) *rank {
	return &rank{
		handle: p.Handle, number: p.Rank, library: l, object: objectOf(p), cpus: float64(p.CPUsAllowed),
		window: sdk.NewWindow(crowdSpan),
	}
}

// sample takes a round's signals.
func (r *rank) sample(s sdk.Sample) {
	r.asleep = false
	r.window.Add(s)
	if r.since.IsZero() {
		r.since = s.At
	}
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
	h.Want(r.handle, sdk.SamplesFrom(crowdedRank()))
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
	r.watched, r.since = true, time.Time{}
	h.AddPoint(point(r.handle, r.object))
}

// watchedFor is for how long the calls of the rank have been asked for. It begins with a
// sample: a tunlet that was just started knows only when the session began.
func (r *rank) watchedFor(now time.Time) time.Duration {
	if r.since.IsZero() {
		return 0
	}
	return now.Sub(r.since)
}

// unwatch gives it back.
func (r *rank) unwatch(h *sdk.Host) {
	if !r.watched {
		return
	}
	r.watched, r.placed, r.off = false, false, false
	h.RemovePoint(pointID(r.handle))
}

// communication lists the functions whose calls are counted: those that move
// data between ranks or wait for it. Left out on purpose are clocks and local
// questions (MPI_Wtime, MPI_Comm_rank), which say nothing about progress, and
// polls (MPI_Test*, MPI_Iprobe, MPI_Improbe), which a rank makes more often the
// less there is to do. MPI_Win_test is one that gets in with the others of its kind:
// hardly any program calls it. The leading * lets PMPI_ names in, by which Open MPI's
// Fortran bindings call; a C program calls one of the two names, never both.
func communication() []string {
	return []string{
		"*MPI_*[Ss]end*", "*MPI_Recv", "*MPI_[IM]recv", "*MPI_[PM]*robe", "*MPI_Start*", "*MPI_Wait*",
		"*MPI_*[Bb]arrier", "*MPI_*[Bb]cast", "*MPI_*[Gg]ather*", "*MPI_Scatter*", "*MPI_*lltoall*",
		"*MPI_*[Rr]educe*", "*MPI_*[Ss]can", "*MPI_Win_*",
	}
}

// point is the measure point for one rank, in the library of the given pattern.
func point(p sdk.Handle, object string) sdk.Point {
	return sdk.Point{
		ID: pointID(p), Object: object, Symbols: communication(), DynamicCallsOnly: true,
		Place: sdk.Entry, Delivery: sdk.DeliverAggregate, Processes: []sdk.Handle{p},
	}
}

func pointID(p sdk.Handle) string { return fmt.Sprintf("mpi@%d", p) }
