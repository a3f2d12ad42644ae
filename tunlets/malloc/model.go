// SPDX-License-Identifier: Apache-2.0

package malloc

import "github.com/attune-hpc/attune/tunlets/sdk"

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30

	pageBytes = 4096

	// largeBytes is the size from which glibc maps a block of its own, and
	// from which the top of the heap is trimmed, unless told otherwise
	// (mallopt(3): M_MMAP_THRESHOLD, M_TRIM_THRESHOLD).
	largeBytes = 128 * kib
	// hugeBytes is the size from which glibc maps every block of its own
	// whatever it is told: HEAP_MAX_SIZE/2 on 64-bit machines bounds
	// M_MMAP_THRESHOLD. Settings do not help such blocks.
	hugeBytes = 32 * mib

	// defaultFaultSeconds is what a page fault costs, with the zeroing of its
	// page, where system time cannot be read. Measured on a virtual machine;
	// together with gain() it predicted what was measured there.
	defaultFaultSeconds = 1.5e-6
	// maxFaultSeconds bounds the system time that is put down to one fault of
	// a small page. More than that must have been spent on something else,
	// reading files for instance.
	maxFaultSeconds = 4e-6
	// maxConfirmedFaultSeconds is that bound where the blocks were counted and
	// explain the faults, and reads and writes are known: on a virtual machine
	// whose cores others use, too, a fault was measured to take 13 and more.
	maxConfirmedFaultSeconds = 40e-6
	// callSeconds and byteSeconds are what a read or write takes of system time,
	// at most; own measurement with tmpfs and pipes of 0.3 to 1 us and 0.1 to
	// 0.25 ns.
	callSeconds, byteSeconds = 1e-6, 0.25e-9
	// maxPages bounds the pages that one fault brings (2 MiB huge pages).
	maxPages = 512

	// allExplained is how much of the memory blocks account for that are the cause
	// of all of it. Measured, 0.6 to 1: blocks and faults are not counted over
	// exactly the same time, and a storm has few blocks in it.
	allExplained = 0.6

	// maxShare keeps the gain finite.
	maxShare = 0.98
)

// load is what page faults cost a process, from signals read outside it. All
// are per second of real time.
type load struct {
	// faults is minor faults.
	faults float64
	// churn is the part of them, 0 to 1, that replaced memory which had been
	// given back: what did not make resident memory grow.
	churn float64
	// run is CPU seconds, all threads.
	run float64
	// system is CPU seconds in the kernel; 0 where unknown or below a tick.
	system float64
	// files is what reads and writes may have taken of system; where they are not
	// known, all of it.
	files float64
}

// loadOf reads a load from a span; false if it lacks the signals or the
// process did not run.
func loadOf(s sdk.Span) (load, bool) {
	faults, okFaults := s.Rate(sdk.MinorFaults)
	growth, okGrowth := s.Delta(sdk.ResidentBytes)
	run, okRun := cpu(s)
	if !okFaults || !okGrowth || !okRun || run <= 0 {
		return load{}, false
	}
	l := load{faults: faults, run: run}
	if system, ok := s.Rate(sdk.CPUSystem); ok {
		l.system = system * 1e-9
		l.files = fileSeconds(s, l.system)
	}
	if brought := faults * pageBytes; brought > 0 {
		l.churn = min(1, max(0, 1-max(0, growth)/s.Seconds()/brought))
	}
	return l, true
}

// fileSeconds is the most that reads and writes may have taken of the system time
// of a span; all of it where they are not known.
func fileSeconds(s sdk.Span, system float64) float64 {
	seconds := 0.0
	for _, of := range []struct {
		signal sdk.Signal
		each   float64
	}{
		{sdk.ReadCalls, callSeconds}, {sdk.WriteCalls, callSeconds},
		{sdk.ReadBytes, byteSeconds}, {sdk.WrittenBytes, byteSeconds},
	} {
		rate, ok := s.Rate(of.signal)
		if !ok {
			return system
		}
		seconds += rate * of.each
	}
	return min(seconds, system)
}

// cpu is CPU seconds per second: the scheduler's exact time, else ticks.
func cpu(s sdk.Span) (float64, bool) {
	if run, ok := s.Rate(sdk.RunTime); ok {
		return run * 1e-9, true
	}
	user, okUser := s.Rate(sdk.CPUUser)
	system, okSystem := s.Rate(sdk.CPUSystem)
	return (user + system) * 1e-9, okUser && okSystem
}

// churned is the bytes per second that were given back and taken again, for
// pages of the given size.
func (l load) churned() float64 { return l.faults * l.churn * pageBytes }

// share is the part of the process' CPU time, 0 to maxShare, that goes into
// replacing memory. pages is how many small pages a fault brings, 1 unless
// huge pages are known to be in play.
//
// Own derivation from the measured model: the cost of one fault is taken from
// the system time of the same span rather than from a constant, since it
// differs by ten between machines; bounded by maxFaultSeconds per small page,
// so that system time spent otherwise is not promised as a gain.
func (l load) share(pages float64) float64 {
	cost := defaultFaultSeconds
	if l.system > 0 && l.faults > 0 {
		cost = min(l.system/l.faults, maxFaultSeconds*min(max(pages, 1), maxPages))
	}
	return l.shareAt(cost)
}

// grows takes it that the process grows by so many bytes per second, if that is
// less than what two samples said: the difference of two moments of a process that
// takes memory and gives it back is chance for the most part.
func (l load) grows(bytes float64) load {
	if brought := l.faults * pageBytes; brought > 0 {
		l.churn = max(l.churn, min(1, 1-max(0, bytes)/brought))
	}
	return l
}

// confirmedShare is the same where blocks were counted that explain the faults:
// what reads and writes do not account for of the system time is then put down to
// the faults, and the bound on what one costs is higher.
func (l load) confirmedShare(pages float64) float64 {
	least := l.share(pages)
	if l.faults <= 0 {
		return least
	}
	cost := (l.system - l.files) / l.faults
	return max(least, l.shareAt(min(cost, maxConfirmedFaultSeconds*min(max(pages, 1), maxPages))))
}

// shareAt is the share if a fault costs so many seconds.
func (l load) shareAt(cost float64) float64 { return min(maxShare, l.faults*l.churn*cost/l.run) }

// gain is how many times faster the program gets when a share of its CPU time
// is saved: 1 / (1 - share). With share = minflt/s x 1.5 us this is the model
// that predicted the measured gains of the cases malloc and numpy.
func gain(share float64) float64 { return 1 / (1 - share) }

// blocks is what the allocation hooks counted over some time.
type blocks struct {
	seconds float64
	count   float64
	bytes   float64
	// helped is the part of bytes in blocks that the settings can help.
	helped float64
}

func (b *blocks) add(a sdk.Aggregate) {
	b.count += float64(a.Count)
	b.bytes += float64(a.Sum)
	b.helped += float64(a.Sum) * (1 - a.ShareFrom(hugeBytes))
}

// explains is the part of the churned memory, 0 to 1, that the given bytes of
// blocks can account for.
func (b blocks) explains(l load, bytes float64) float64 {
	if b.seconds <= 0 || l.churned() <= 0 {
		return 0
	}
	return min(1, bytes/b.seconds/l.churned())
}

// likely is the part of the churned memory that the given bytes of blocks stand
// for: as explains, but all of it from allExplained on.
func (b blocks) likely(l load, bytes float64) float64 {
	return min(1, b.explains(l, bytes)/allExplained)
}

// pagesPerFault estimates from the blocks how many small pages a fault brings.
func (b blocks) pagesPerFault(l load) float64 {
	if b.seconds <= 0 || l.faults <= 0 {
		return 1
	}
	return b.bytes / b.seconds / (l.faults * pageBytes)
}
