// SPDX-License-Identifier: Apache-2.0

package counters

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/proto/attune/series"
)

// thread is one thread whose events are counted.
type thread struct {
	tid                            int
	start                          uint64 // clock ticks since boot
	software, scheduling, hardware group
	userOnly                       bool
}

func (t *thread) close() {
	t.software.close()
	t.scheduling.close()
	t.hardware.close()
}

func (t *thread) descriptors() int { return len(t.software) + len(t.scheduling) + len(t.hardware) }

// startOf returns when a thread was started. [procid.ErrGone] if the process has none
// of that id.
func startOf(pid, tid int) (uint64, error) {
	stat, err := procid.ReadThreadStat(pid, tid)
	return stat.StartTicks, err
}

// ways is how events are counted on this machine, by this user.
type ways struct {
	userOnly   bool   // this user may not count in the kernel
	noHardware string // why the processor counts nothing; empty: it does, as far as is known
}

// open has the events of a thread counted. The id may be another thread's meanwhile:
// the start is compared before and after.
func (w *ways) open(pid, tid int) (*thread, error) {
	start, err := startOf(pid, tid)
	if err != nil {
		return nil, err
	}
	t := &thread{tid: tid, start: start}
	if err := w.openGroups(t); err != nil {
		t.close()
		return nil, err
	}
	after, err := startOf(pid, tid)
	if err == nil && after != start {
		err = fmt.Errorf("thread %d of %d: %w", tid, pid, procid.ErrGone)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (w *ways) openGroups(t *thread) (err error) {
	if t.software, err = w.openAllowed(t.tid, software()); err != nil {
		return err
	}
	if t.userOnly = w.userOnly; !t.userOnly {
		if t.scheduling, err = openGroup(t.tid, scheduling(), false); err != nil {
			return err
		}
	}
	if w.noHardware != "" {
		return nil
	}
	t.hardware, err = w.openAllowed(t.tid, hardware())
	if noCounters(err) {
		w.noHardware, err = "the processor offers no counters here: on a virtual machine, have the host pass them through", nil
	}
	return err
}

// openAllowed opens a group with what the kernel does for the thread, or without where
// this user may not count that.
func (w *ways) openAllowed(tid int, events []event) (group, error) {
	if !w.userOnly {
		g, err := openGroup(tid, events, false)
		if !denied(err) {
			return g, err
		}
	}
	g, err := openGroup(tid, events, true)
	w.userOnly = w.userOnly || err == nil
	return g, err
}

func denied(err error) bool { return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) }

// noCounters says whether an error means that the processor does not count such events.
func noCounters(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV)
}

// explain returns an error of opening with what can be done about it.
func explain(err error) string {
	switch {
	case denied(err):
		return err.Error() + ": lower kernel.perf_event_paranoid, or grant CAP_PERFMON"
	case errors.Is(err, unix.EMFILE):
		return err.Error() + ": raise the limit on open files of this attune (ulimit -n)"
	case errors.Is(err, unix.ENOSYS):
		return err.Error() + ": needs a kernel with CONFIG_PERF_EVENTS, and a sandbox that lets it through"
	}
	return err.Error()
}

// row reads the thread's counters.
func (t *thread) row() (series.ThreadCounter, error) {
	out := series.ThreadCounter{TID: t.tid, StartTicks: t.start}
	got, err := t.software.read()
	if err != nil {
		return out, err
	}
	out.Run, out.MinorFaults, out.MajorFaults = time.Duration(got.values[0]), got.values[1], got.values[2]
	if len(t.scheduling) > 0 {
		if got, err = t.scheduling.read(); err != nil {
			return out, err
		}
		out.Scheduling = &series.Scheduling{Switches: got.values[0], Migrations: got.values[1]}
	}
	if len(t.hardware) > 0 {
		if got, err = t.hardware.read(); err != nil {
			return out, err
		}
		out.Hardware = hardwareRow(got, t.userOnly)
	}
	return out, nil
}

// hardwareRow is what the processor counted.
func hardwareRow(got counted, userOnly bool) *series.Hardware {
	return &series.Hardware{
		Cycles: got.values[0], Instructions: got.values[1], CacheMisses: got.values[2], BranchMisses: got.values[3],
		Enabled: got.enabled, Running: got.running, UserOnly: userOnly,
	}
}
