// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
)

const (
	// firstSample is when the processes are looked at first. Each look is twice
	// as far from the one before, up to the period: short programs are seen too.
	firstSample = time.Millisecond
	// share is what part of the time may be spent with looking, sharedShare with
	// asking what memory is shared, as divisors.
	share, sharedShare = 50, 20
	// coresWindow is the least time over which cores are averaged.
	coresWindow = 100 * time.Millisecond
	// growth is by how much the resident memory must have grown before it is asked
	// again what of it is shared, as a divisor.
	growth = 20
)

// sampler looks at the living processes again and again.
type sampler struct {
	options Options
	source  source
	group   *group
	started time.Time
	ender   ender
	// What follows is the loop's until it has ended.
	last, window reading
	peaks        account.Memory
	cores        *float64
	times        map[string]float64
	asked        uint64    // resident memory when it was last asked what is shared
	askAgain     time.Time // not before
	rows         *rows
	err          error // the first
	excesses     []excess
}

// run looks until ctx ends. The loop has the sampler for itself meanwhile.
func (s *sampler) run(ctx context.Context) {
	// The time that a look takes is the thread's: on a busy machine it waits longer
	// than it works.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := firstSample; ; pause = min(2*pause, s.options.Every) {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		begun, worked := time.Now(), threadTime()
		n, seen := s.sample(begun)
		next := max(pause, share*(threadTime()-worked)) - time.Since(begun)
		if seen {
			s.askShared(n)
		}
		if s.ender.ending() {
			next = endPause
		}
		timer.Reset(next)
	}
}

// threadTime is the CPU time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // cannot fail
	return time.Duration(t.Nano())
}

// sample looks once. False if that cannot be done.
func (s *sampler) sample(at time.Time) (now, bool) {
	n, err := s.source.look()
	if err != nil {
		if s.err == nil {
			s.err = err
		}
		return n, false
	}
	r := read(n, s.options.Series != nil || s.options.limitsBytes())
	r.seconds = at.Sub(s.started).Seconds()
	// A thread that ended between two files is in neither.
	r.taken.cpu = max(r.taken.cpu, s.last.taken.cpu)
	r.taken.read, r.taken.written = max(r.taken.read, s.last.taken.read), max(r.taken.written, s.last.taken.written)
	r.cgroup, r.cgroupPeak, r.hasCgroup = s.group.memory()
	s.keepPeaks(&r)
	s.writeRow(&r)
	s.last = r
	s.check(&r)
	s.ender.press(n.alive, at)
	return n, true
}

// askShared asks what of the memory is shared if there is more than when it was
// asked last: that takes the kernel long, which walks all pages.
func (s *sampler) askShared(n now) {
	begun := time.Now()
	if s.last.resident <= s.asked+s.asked/growth || begun.Before(s.askAgain) {
		return
	}
	worked := threadTime()
	if pss, swapped, known := proportional(n.alive); known {
		s.asked = s.last.resident
		s.keep("memory.proportional_peak_bytes", &s.peaks.Proportional, pss, s.last.seconds)
		s.keep("memory.swap_peak_bytes", &s.peaks.Swap, swapped, s.last.seconds)
	}
	s.askAgain = begun.Add(sharedShare * (threadTime() - worked))
}

// keepPeaks keeps what is more than there was before, and when that was.
func (s *sampler) keepPeaks(r *reading) {
	s.keep("memory.resident_peak_bytes", &s.peaks.Resident, r.resident, r.seconds)
	s.keep("memory.anonymous_peak_bytes", &s.peaks.Anonymous, r.anonymous, r.seconds)
	s.keep("memory.virtual_peak_bytes", &s.peaks.Virtual, r.virtual, r.seconds)
	if passed := r.seconds - s.window.seconds; passed >= coresWindow.Seconds() {
		r.cores = (r.taken.cpu - s.window.taken.cpu).Seconds() / passed
		if s.cores == nil || r.cores > *s.cores {
			s.cores, s.times["cores_peak"] = new(r.cores), r.seconds
		}
		s.window = *r
	}
}

func (s *sampler) keep(name string, peak **uint64, value uint64, at float64) {
	if *peak == nil || value > **peak {
		*peak, s.times[name] = new(value), at
	}
}

// writeRow writes a line of the time series.
func (s *sampler) writeRow(r *reading) {
	if s.rows == nil {
		return
	}
	row := account.Row{
		Seconds: r.seconds, CPUSeconds: r.taken.cpu.Seconds(), Processes: r.processes,
		Resident: r.resident, Anonymous: r.anonymous, Virtual: r.virtual,
		Read: r.taken.read, Written: r.taken.written, StorageRead: r.taken.storageRead, StorageWritten: r.taken.storageWritten,
	}
	if passed := r.seconds - s.last.seconds; s.last.seconds > 0 && passed > 0 {
		row.Cores = new((r.taken.cpu - s.last.taken.cpu).Seconds() / passed)
	}
	if r.hasCgroup {
		row.Cgroup = new(r.cgroup)
	}
	s.rows.put(row)
}

// check compares a reading with the limits.
func (s *sampler) check(r *reading) {
	if len(s.options.Limits) == 0 {
		return
	}
	values := r.values()
	for i, limit := range s.options.Limits {
		value := values[limit.Field]
		if e := &s.excesses[i]; value > limit.Max && value > e.peak {
			e.limit, e.peak = limit, value
			if !limit.Soft {
				s.ender.begin(time.Now())
			}
		}
	}
}

// fill fills in what was sampled.
func (s *sampler) fill(a *account.Account, mark uint64, all bool) {
	if s.err != nil {
		a.Missing["memory"] = s.err.Error()
	}
	a.Memory, a.CoresPeak, a.PeakTimes = s.peaks, s.cores, s.times
	for name := range s.times {
		a.Accuracy[name], a.Sources[name] = account.Sampled, "/proc of all living processes, at one time"
	}
	fillMark(a, mark, all)
	if peak, known := s.group.peak(); known {
		a.Memory.Cgroup = new(peak)
		a.Accuracy["memory.cgroup_peak_bytes"], a.Sources["memory.cgroup_peak_bytes"] = account.Exact, "control group's memory controller"
	} else {
		a.Missing["memory.cgroup_peak_bytes"] = s.group.reason()
	}
	if s.rows == nil {
		return
	}
	written, err := s.rows.end()
	a.Series = &account.Series{Path: s.options.SeriesPath, EverySeconds: s.options.Every.Seconds(), Rows: written}
	if err != nil {
		a.Missing["series"] = err.Error()
	}
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
	a.Accuracy[field], a.Sources[field] = account.Sampled, "the kernel's mark of the process with the most, which is more than was seen of all at one time"
	if single {
		a.Accuracy[field], a.Sources[field] = account.Exact, "the kernel's mark of each process, of which there was one at a time"
	}
}
