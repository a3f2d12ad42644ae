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
	// maxPages bounds the pages that one fault brings (2 MiB huge pages).
	maxPages = 512

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
	}
	if brought := faults * pageBytes; brought > 0 {
		l.churn = min(1, max(0, 1-max(0, growth)/s.Seconds()/brought))
	}
	return l, true
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
	return min(maxShare, l.faults*l.churn*cost/l.run)
}

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

// pagesPerFault estimates from the blocks how many small pages a fault brings.
func (b blocks) pagesPerFault(l load) float64 {
	if b.seconds <= 0 || l.faults <= 0 {
		return 1
	}
	return b.bytes / b.seconds / (l.faults * pageBytes)
}
