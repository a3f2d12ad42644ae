// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// symptomSpan is over how long the signals are looked at before the threads are.
const symptomSpan = 300 * time.Millisecond

// process follows one process.
type process struct {
	handle sdk.Handle
	usable sdk.CPUList
	window *sdk.Window
	heard  time.Time // of the last sample
	ends   ends      // of pipes and sockets, since looking began

	looked   bool   // its threads are being read
	member   bool   // its progress is reported
	proposal string // that changed it, while in force or under way
	gaveUp   bool   // nothing can be done for it
}

func newProcess(handle sdk.Handle) *process {
	return &process{handle: handle, window: sdk.NewWindow(symptomSpan), ends: newEnds()}
}

// span is the newest symptomSpan; false before it is there.
func (p *process) span() (sdk.Span, bool) {
	s := p.window.Latest(symptomSpan)
	return s, s.Duration() >= symptomSpan*9/10
}

// candidate says whether anything could be done for it.
func (p *process) candidate() bool {
	return p.proposal == "" && !p.gaveUp && p.usable.Count() >= 2
}

// waits says that its threads lack a CPU, and may be bound: it has less CPUs than
// it could, or several threads, which may be bound one by one.
func (p *process) waits() bool {
	span, ok := p.span()
	if !ok || !p.candidate() {
		return false
	}
	wait, okWait := span.Rate(sdk.RunqueueWait)
	cpus, okCPUs := p.window.Last(sdk.CPUsAllowed)
	threads, _ := p.window.Last(sdk.Threads)
	return okWait && okCPUs && wait >= waiting*1e9 && (cpus < float64(p.usable.Count()) || threads >= 2)
}

// wakes says that it may be one of a pair, or both.
func (p *process) wakes() bool { return p.talks(leastSleeps) }

// talks says that it sleeps and writes that often per second.
func (p *process) talks(least float64) bool {
	span, ok := p.span()
	if !ok || !p.candidate() {
		return false
	}
	sleeps, okSleeps := span.Rate(sdk.VoluntarySwitches)
	writes, okWrites := span.Rate(sdk.WriteCalls)
	return okSleeps && okWrites && sleeps >= least && writes >= least/2
}

// user is the CPU time that it spends on its own work: CPUs' worth.
func (p *process) user() float64 {
	span, _ := p.span()
	user, _ := span.Rate(sdk.CPUUser)
	return user * 1e-9
}

// load is what the process runs and waits: CPUs' worth.
func (p *process) load() (run, wait float64) {
	span, _ := p.span()
	r, _ := span.Rate(sdk.RunTime)
	w, _ := span.Rate(sdk.RunqueueWait)
	return r * 1e-9, w * 1e-9
}

// calls is how often it calls read and write per second.
func (p *process) calls() float64 {
	span, _ := p.span()
	reads, _ := span.Rate(sdk.ReadCalls)
	writes, _ := span.Rate(sdk.WriteCalls)
	return reads + writes
}

// progress is how fast it got on between the last two samples: calls of read and
// write per second, or CPU seconds per second.
func (p *process) progress(calls bool) (float64, bool) {
	last := p.window.Latest(time.Nanosecond)
	if !calls {
		run, ok := last.Rate(sdk.RunTime)
		return run * 1e-9, ok
	}
	reads, okReads := last.Rate(sdk.ReadCalls)
	writes, okWrites := last.Rate(sdk.WriteCalls)
	return reads + writes, okReads && okWrites
}

// lookAt has its threads read, and pipes and sockets where it may be one of a pair.
func (p *process) lookAt(h *sdk.Host) {
	p.looked, p.ends = true, newEnds()
	if p.talks(leastBound) {
		h.WantDetails(p.handle, sdk.DetailThreads, sdk.DetailPipes, sdk.DetailSockets)
		return
	}
	h.WantDetails(p.handle, sdk.DetailThreads)
}

// lookAway gives that back.
func (p *process) lookAway(h *sdk.Host) {
	if p.looked {
		p.looked = false
		h.WantDetails(p.handle)
	}
}

// rest wants no samples before one of the symptoms shows.
func (p *process) rest(h *sdk.Host) {
	if p.proposal != "" {
		return
	}
	p.window.Reset()
	if p.gaveUp {
		h.Want(p.handle, sdk.NoSamples())
		return
	}
	h.Want(p.handle, sdk.SamplesFrom(symptoms()...))
}

// idle rests if it shows no symptom, and is not looked after since it was changed.
func (p *process) idle(h *sdk.Host) {
	if _, known := p.span(); known && p.proposal == "" && !p.waits() && !p.talks(leastBound) {
		p.rest(h)
	}
}

// symptoms are reached by a process that lacks a CPU, or has to do with one that
// does, or sleeps as one of a pair does.
func symptoms() []sdk.Level {
	return []sdk.Level{
		{Signal: sdk.RunqueueWait, AtLeast: waiting / 2 * float64(time.Second)},
		{Signal: sdk.VoluntarySwitches, AtLeast: leastSleeps},
	}
}
