// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/clock"
)

// firstSample is when the processes are looked at first. Each look is twice
// as far from the one before, up to the period: short programs are seen too.
const firstSample = time.Millisecond

// defaultFreeTime is the CPU time of the first looks, which take longest, that keeps no next one away.
const defaultFreeTime = 30 * time.Millisecond

// sampler looks at the living processes again and again.
type sampler struct {
	options  Options
	source   source
	group    *group
	disk     *disk // nil: it is not measured
	started  time.Time
	enforcer enforcer
	shown    shown
	// What follows is the loop's until it has ended.
	last, window reading
	whole        time.Time // of the last look that was whole, or had to do; zero: none yet
	peaks        account.Memory
	cores        *float64
	times        map[string]float64
	sharing      *sharing
	opened       *opened // nil: not asked
	err          error   // the first
	spans        spans
	history      history
}

// run looks until ctx ends. The loop has the sampler for itself meanwhile.
func (s *sampler) run(ctx context.Context) {
	// The time that a look takes is the thread's: on a busy machine it waits longer
	// than it works.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	timer := time.NewTimer(0)
	defer timer.Stop()
	free := cmp.Or(s.options.freeTime, defaultFreeTime)
	for pause := firstSample; ; pause = min(2*pause, s.options.Every) {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return // both may be ready, and no limit is compared from here on
		}
		begun, worked := time.Now(), clock.Thread()
		if n, seen := s.sample(begun); seen && !s.options.Beside {
			s.sharing.asker.ask(question{n.alive, s.last.resident, s.last.seconds})
			s.opened.ask(n.alive)
		}
		if !s.last.partial {
			s.shown.pause(begun, pause)
		}
		took := clock.Thread() - worked
		charged := max(0, took-free)
		free -= took - charged
		next := max(min(pause, s.enforcer.nearest(&s.last)), s.enforcer.share()*charged) - time.Since(begun)
		if s.enforcer.ender.ending() {
			next = endPause
		}
		timer.Reset(next)
	}
}

// wholePatience is how long no look has to be whole until one that is not has to do: where threads
// end all the time none is, and what each lacks is little.
const wholePatience = 5 * coresWindow

// sample looks once. False if that cannot be done.
func (s *sampler) sample(at time.Time) (now, bool) {
	begun, worked := time.Now(), clock.Thread()
	n, err := s.source.look()
	n.begun, n.worked = begun, worked
	if err != nil {
		if s.err == nil {
			s.err = err
		}
		return n, false
	}
	r := read(n, s.options.needsBytes())
	if !r.partial || at.Sub(cmp.Or(s.whole, s.started)) > wholePatience {
		r.partial, s.whole = false, at
	}
	r.seconds = at.Sub(s.started).Seconds()
	r.taken.keep(s.last.taken) // a thread that ended between two files is in neither
	r.cgroup, r.cgroupPeak, r.hasCgroup = s.group.memory()
	r.disk, r.hasDisk = s.disk.latest()
	s.keepPeaks(&r)
	switch {
	case len(n.alive) == 0: // the command has ended before this look
	case r.partial: // what it lacks would come in one span with what is taken meanwhile
		s.history.resident = max(s.history.resident, r.resident)
	default:
		s.spans.add(r.seconds, r.taken.cpu, r.taken.wait, func() cause { return waitOf(n.alive) })
		s.history.add(&r, s.options.Every)
	}
	s.shown.show(&r, at)
	s.last = r
	s.enforcer.check(&r)
	s.enforcer.ender.press(n.alive, at)
	return n, true
}

// keepPeaks keeps what is more than there was before, and when that was.
func (s *sampler) keepPeaks(r *reading) {
	if passed := r.seconds - s.window.seconds; passed >= coresWindow.Seconds() && !r.partial {
		r.cores = (r.taken.cpu - s.window.taken.cpu).Seconds() / (passed + r.late)
		if s.cores == nil || r.cores > *s.cores {
			s.cores, s.times["cores_peak"] = new(r.cores), r.seconds
		}
		s.window = *r
	}
	if r.resident == 0 {
		return // nothing was seen but what begins and ends
	}
	s.keep("memory.resident_peak_bytes", &s.peaks.Resident, r.resident, r.seconds)
	s.keep("memory.anonymous_peak_bytes", &s.peaks.Anonymous, r.anonymous, r.seconds)
	s.keep("memory.virtual_peak_bytes", &s.peaks.Virtual, r.virtual, r.seconds)
}

func (s *sampler) keep(name string, peak **uint64, value uint64, at float64) {
	if *peak == nil || value > **peak {
		*peak, s.times[name] = new(value), at
	}
}

// sampledSource is what all looks are at.
const sampledSource = "/proc of all living processes, at one time"

// fill fills in what was sampled.
func (s *sampler) fill(a *account.Account, mark uint64, all bool) {
	if s.err != nil {
		a.Missing["memory"] = s.err.Error()
	}
	s.fillShared(a, mark)
	if s.peaks.Resident == nil && s.err == nil {
		a.Missing["memory"] = "too short: no process was looked at while it ran"
	}
	a.Memory, a.CoresPeak, a.PeakTimes = s.peaks, s.cores, s.times
	a.Note(account.Sampled, sampledSource, slices.Collect(maps.Keys(s.times))...)
	fillMark(a, mark, all)
	s.spans.fill(a)
	s.fillHistory(a)
	if s.options.Beside {
		a.Missing["memory.proportional_peak_bytes"] = "not asked for, since the kernel goes through all pages for it: attune account asks"
	}
	if peak, known := s.group.peak(); known {
		a.Memory.Cgroup = new(peak)
		a.Note(account.Exact, "control group's memory controller", "memory.cgroup_peak_bytes")
	} else {
		a.Missing["memory.cgroup_peak_bytes"] = s.group.reason()
	}
	s.shown.fill(a)
}

// fillShared fills in what of the memory was shared and swapped out. It was asked of the most memory,
// but for growth too small to ask again; else what was shared is no peak. What was swapped out
// is told when it was asked of half of it at least.
func (s *sampler) fillShared(a *account.Account, mark uint64) {
	const sharedField, swapField = "memory.proportional_peak_bytes", "memory.swap_peak_bytes"
	peaks, asked := s.sharing.end()
	if s.peaks.Resident == nil {
		return // nothing was asked
	}
	most := max(mark, *s.peaks.Resident)
	if shared, known := peaks[sharedField]; known && asked >= most-most/growth {
		s.peaks.Proportional, s.times[sharedField] = new(shared.value), shared.seconds
	} else {
		a.Missing[sharedField] = "too short: what is shared was not asked when there was the most memory"
	}
	if swapped, known := peaks[swapField]; known && asked >= most/2 {
		s.peaks.Swap, s.times[swapField] = new(swapped.value), swapped.seconds
	}
}

// fillHistory fills in how it went, up to the end.
func (s *sampler) fillHistory(a *account.Account) {
	if a.CPUSeconds == nil {
		return
	}
	s.history.resident = max(s.history.resident, s.last.resident)
	s.history.close(a.WallSeconds, seconds(*a.CPUSeconds))
	a.History = slices.DeleteFunc(s.history.list, func(m account.Moment) bool { return m.Seconds > a.WallSeconds })
	a.Note(account.Sampled, sampledSource, "history.cores", "history.resident_bytes")
}

// fillMark raises the resident peak to the most that a single process had, of
// which the kernel keeps a mark: all of them had that at least. Of a single
// process it is all.
func fillMark(a *account.Account, mark uint64, all bool) {
	const field = "memory.resident_peak_bytes"
	single := all && a.Processes.Peak != nil && *a.Processes.Peak == 1
	if mark == 0 || !single && a.Memory.Resident != nil && mark <= *a.Memory.Resident {
		return
	}
	a.Memory.Resident = new(mark)
	delete(a.PeakTimes, field)
	a.Note(account.Sampled, "the kernel's mark of the process with the most, which is more than was seen of all at one time", field)
	if single {
		a.Note(account.Exact, "the kernel's mark of each process, of which there was one at a time", field)
	}
}
