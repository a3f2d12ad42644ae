// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"io"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// counted counts the bytes that are written to it.
type counted struct{ atomic.Int64 }

func (c *counted) Write(data []byte) (int, error) {
	c.Add(int64(len(data)))
	return len(data), nil
}

// BenchmarkStream is what a larger buffer gains a program of Debian's that
// writes a line at a time into a pipe: the time of its own that it takes for a
// megabyte as it is, with lines held back, and with 1 MiB, one after the other in
// one process; medians.
func BenchmarkStream(b *testing.B) {
	cmd := exec.Command("stdbuf", "-oL", "xxd", "/dev/zero")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Skipf("%v: apt-get install xxd", err)
	}
	var seen counted
	drained := make(chan error, 1)
	go func() {
		_, err := io.Copy(&seen, stdout)
		drained <- err
	}()
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-drained
		_ = cmd.Wait()
	})
	a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(b, b.TempDir()), Kinds: Kinds(nil)})
	for seen.Load() == 0 { // stdbuf has become xxd
		time.Sleep(time.Millisecond)
	}
	process := actuatetest.MustProcess(b, cmd.Process.Pid)
	cost := func() float64 { // milliseconds of CPU for a megabyte
		spent, bytes := cpuTime(b, cmd.Process.Pid), seen.Load()
		time.Sleep(time.Second)
		return 1e3 * (cpuTime(b, cmd.Process.Pid) - spent).Seconds() / (float64(seen.Load()-bytes) / 1e6)
	}
	change := func(name string, value *attunev1.Value) {
		r := a.Apply(b.Context(), process, &attunev1.Change{Id: name, Action: &attunev1.Action{
			Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: name, Value: value}},
		}})
		if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			b.Fatal(r)
		}
	}
	var lines, full, large []float64
	for b.Loop() {
		lines = append(lines, cost())
		change("glibc.stdio.mode", access.TextValue("full"))
		full = append(full, cost())
		change("glibc.stdio.size", access.Integer(1<<20))
		large = append(large, cost())
		for _, id := range a.Applied() {
			if u := a.Undo(b.Context(), id); u.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
				b.Fatal(u)
			}
		}
	}
	b.ReportMetric(median(lines), "ms/MB-lines")
	b.ReportMetric(median(full), "ms/MB-full")
	b.ReportMetric(median(large), "ms/MB-1MiB")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// cpuTime is what a process has used, by the clock of its own.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	const perProcess = 2 // CPUCLOCK_SCHED of the process, not of a thread
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|perProcess), &now); err != nil {
		b.Fatal(err)
	}
	return time.Duration(now.Nano())
}
