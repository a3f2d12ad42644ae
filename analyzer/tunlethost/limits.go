// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// Limits of one tunlet's process. A tunlet that exceeds one is ended and put
// into quarantine: the application gets back what it took. Zero values mean the
// defaults given.
type Limits struct {
	// MemoryBytes is the most resident memory; 0: 128 MB. One in Go takes some
	// 15 MB, one in an interpreted language 40 to 70. Processes that a tunlet
	// starts itself are not counted.
	MemoryBytes uint64
	// CPU is the most CPU time per time, over CPUWindow: 1 is one core; 0: 0.8.
	// A million events a second take half a core.
	CPU float64
	// CPUWindow is the time over which CPU time is averaged: a tunlet may work hard
	// for a while when much has happened; 0: 10 s.
	CPUWindow time.Duration
}

const (
	defaultMemory    = 128_000_000
	defaultCPU       = 0.8
	defaultCPUWindow = 10 * time.Second

	// lookEvery is how often a tunlet's memory and CPU time are looked at.
	lookEvery = time.Second
	// headroom is how much address space with data a tunlet may have beyond its
	// limit: enough for the reserves of run-time systems and the stacks of
	// threads, and little enough that the node survives what is allocated
	// between two looks.
	headroom = 1 << 30
	// killFirst has the kernel take the tunlet when memory runs out, never the
	// application.
	killFirst = "1000"
)

// errLimit marks the end of a tunlet that took too much.
var errLimit = errors.New("it took more than a tunlet may")

func (l Limits) withDefaults() Limits {
	l.MemoryBytes = cmp.Or(l.MemoryBytes, defaultMemory)
	l.CPU = cmp.Or(l.CPU, defaultCPU)
	l.CPUWindow = cmp.Or(l.CPUWindow, defaultCPUWindow)
	return l
}

// confine has the kernel help with the limits of a process of our own that was
// just started; for good, unless they grow. What the kernel does not let us do is left
// to the looks.
func (l Limits) confine(pid int, grow bool) error {
	data := l.data()
	limit := unix.Rlimit{Cur: data, Max: data}
	var err error
	if grow {
		err = unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &limit)
		limit.Cur = min(data, limit.Max)
	}
	return errors.Join(err, unix.Prlimit(pid, unix.RLIMIT_DATA, &limit, nil),
		os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(killFirst), 0))
}

// data is what the kernel lets a process have of address space with data.
func (l Limits) data() uint64 { return l.withDefaults().MemoryBytes + headroom }

// usage is what a process takes.
type usage struct {
	resident, peak uint64 // memory, bytes
	cpu            time.Duration
}

// usageOf reads what a process takes; false if it is gone.
func usageOf(pid int) (usage, bool) {
	status, err := procid.ReadStatus(pid)
	if err != nil {
		return usage{}, false
	}
	stat, err := procid.ReadStat(pid)
	if err != nil {
		return usage{}, false
	}
	return usage{
		resident: status.Resident, peak: status.Peak,
		cpu: time.Duration(stat.UserTicks+stat.SystemTicks) * procid.Tick,
	}, true
}

// watcher holds a tunlet to its limits.
type watcher struct {
	limits Limits
	from   time.Time // when the window of CPU time began
	cpu    time.Duration
}

// watcher begins to hold what runs to the limits. What its start took does not count:
// on a busy node, or with much to load, that is more than it may take later.
func (l Limits) watcher(of life) watcher {
	u, _ := of.measure()
	return watcher{limits: l, from: time.Now(), cpu: u.cpu}
}

// look returns an errLimit if a tunlet takes too much.
func (w *watcher) look(now time.Time, u usage) error {
	if u.resident > w.limits.MemoryBytes {
		return fmt.Errorf("%w: %d MB of memory, of %d", errLimit, u.resident/1e6, w.limits.MemoryBytes/1e6)
	}
	elapsed := now.Sub(w.from)
	if elapsed < w.limits.CPUWindow {
		return nil
	}
	share := (u.cpu - w.cpu).Seconds() / elapsed.Seconds()
	w.from, w.cpu = now, u.cpu
	if share > w.limits.CPU {
		return fmt.Errorf("%w: %.0f %% of a core over %v, of %.0f", errLimit, 100*share, elapsed.Round(time.Second), 100*w.limits.CPU)
	}
	return nil
}
