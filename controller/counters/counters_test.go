// SPDX-License-Identifier: Apache-2.0

package counters

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/source"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	"github.com/attune-hpc/attune/proto/attune/series"
)

func TestParseGroup(t *testing.T) {
	words := func(values ...uint64) []byte {
		var b bytes.Buffer
		if err := binary.Write(&b, binary.NativeEndian, values); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for _, tt := range []struct {
		name   string
		data   []byte
		events int
		want   counted
		bad    bool
	}{
		{name: "counted all the time", data: words(2, 10, 10, 7, 8), events: 2, want: counted{10, 10, []uint64{7, 8}}},
		{name: "in turns", data: words(1, 100, 25, 9), events: 1, want: counted{100, 25, []uint64{9}}},
		{name: "never, for it does not fit", data: words(1, 100, 0, 0), events: 1, want: counted{100, 0, []uint64{0}}},
		{name: "the kernel ended the group", events: 1, bad: true},
		{name: "cut off", data: words(1, 2, 3, 4)[:30], events: 1, bad: true},
		{name: "of another group", data: words(2, 1, 1, 1), events: 1, bad: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseGroup(tt.data, tt.events)
			if tt.bad != errors.Is(err, errReading) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(counted{})); !tt.bad && diff != "" {
				t.Error(diff)
			}
		})
	}
	row := hardwareRow(counted{100, 25, []uint64{1, 2, 3, 4}}, true)
	want := &series.Hardware{Cycles: 1, Instructions: 2, CacheMisses: 3, BranchMisses: 4, Enabled: 100, Running: 25, UserOnly: true}
	if diff := cmp.Diff(want, row); diff != "" {
		t.Error(diff)
	}
}

func TestExplain(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{unix.EACCES, "kernel.perf_event_paranoid"}, {unix.EPERM, "CAP_PERFMON"}, {unix.EMFILE, "ulimit -n"},
		{unix.ENOSYS, "CONFIG_PERF_EVENTS"}, {unix.EBUSY, unix.EBUSY.Error()},
	} {
		if got := explain(tt.err); !strings.Contains(got, tt.want) {
			t.Errorf("%v is explained by %q, want %q in it", tt.err, got, tt.want)
		}
	}
}

// meter reads one process.
type meter struct {
	t        *testing.T
	counters Counters
	process  source.Process
}

func measured(t *testing.T, pid int) *meter {
	t.Helper()
	identity, err := procid.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{t: t, process: source.Process{Handle: 3, Identity: identity}}
	t.Cleanup(func() {
		if err := m.counters.Close(); err != nil || m.counters.descriptors != 0 {
			t.Errorf("closed with %d descriptors: %v", m.counters.descriptors, err)
		}
	})
	return m
}

// read returns what is counted. ok is false where this user may count nothing, which
// must be told then.
func (m *meter) read() (rows *series.Rows[series.ThreadCounter], ok bool) {
	m.t.Helper()
	var to source.Measured
	if err := m.counters.Read(m.process, m.counters.Tables(), source.NewRoom(1000), &to); err != nil {
		m.t.Fatal(err)
	}
	rows = to.Details.ThreadCounters
	if rows == nil {
		m.t.Fatal("nothing was read")
	}
	if len(rows.Items) == 0 && (openCounter() == nil || !strings.Contains(rows.Error, "perf_event")) {
		m.t.Fatalf("nothing is counted: %q", rows.Error)
	}
	return rows, len(rows.Items) > 0
}

// openCounter tries the simplest counter that there is.
func openCounter() error {
	g, err := openGroup(os.Getpid(), software(), true)
	g.close()
	return err
}

// A thread that computes is counted from when it is seen, with the time that the
// kernel has for it, and its last counts come when it has ended.
func TestThreads(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/spins.c"))
	m := measured(t, target.PID)
	first, ok := m.read()
	if !ok {
		t.Skip("nothing can be counted here: ", first.Error)
	}
	if first.Total != 1 || first.Items[0].TID != target.PID || first.Items[0].StartTicks == 0 {
		t.Fatalf("the first reading: %+v", first)
	}
	if m.counters.ways.noHardware != "" && first.Error != m.counters.ways.noHardware || (first.Items[0].Hardware == nil) != (m.counters.ways.noHardware != "") {
		t.Errorf("hardware: %+v, %q, %q", first.Items[0].Hardware, first.Error, m.counters.ways.noHardware)
	}
	if (first.Items[0].Scheduling == nil) != m.counters.ways.userOnly {
		t.Errorf("scheduling: %+v, user only: %v", first.Items[0].Scheduling, m.counters.ways.userOnly)
	}
	if err := target.Say("begin"); err != nil {
		t.Fatal(err)
	}
	var before, latest series.ThreadCounter
	patience.Until(t, "a thread that computes", func() bool {
		rows, _ := m.read()
		if len(rows.Items) < 2 {
			return false
		}
		before, latest = latest, rows.Items[1]
		return before.Run > 0 && latest.Run > before.Run
	})
	if latest.TID == target.PID || latest.StartTicks == 0 || m.counters.descriptors < 2*len(software()) {
		t.Errorf("the thread: %+v, %d descriptors", latest, m.counters.descriptors)
	}
	if err := target.Say("end"); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the end of the thread, which is told of with its last counts", func() bool {
		rows, _ := m.read()
		if len(rows.Items) == 2 {
			latest = rows.Items[1]
		}
		return len(rows.Items) == 1
	})
	if latest.Run < before.Run {
		t.Errorf("last counts %v are less than %v", latest.Run, before.Run)
	}
	if got := len(m.counters.processes[3].threads); got != 1 {
		t.Errorf("%d threads are counted", got)
	}
}

// What nobody wants is not counted any more, and a process that has ended is gone.
func TestLettingGo(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // killed
	m := measured(t, cmd.Process.Pid)
	_, ok := m.read()
	m.counters.Keep(func(handle uint64) bool { return handle == 3 })
	if ok && m.counters.descriptors == 0 {
		t.Error("nothing is counted of a process that is wanted")
	}
	m.counters.Keep(func(uint64) bool { return false })
	if m.counters.descriptors != 0 || len(m.counters.processes) != 0 {
		t.Errorf("%d descriptors are kept", m.counters.descriptors)
	}
	m.read()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the end of the process", func() bool {
		return errors.Is(m.counters.Read(m.process, nil, source.NewRoom(9), &source.Measured{}), procid.ErrGone)
	})
}

// Threads beyond the bound are not counted, which is told.
func TestManyThreads(t *testing.T) {
	m := measured(t, os.Getpid())
	if rows, ok := m.read(); !ok {
		t.Skip("nothing can be counted here: ", rows.Error)
	}
	p := m.counters.processes[3]
	have := len(p.threads)
	m.counters.descriptors += maxDescriptors
	tids := make([]int, have+1)
	for i, th := range p.threads {
		tids[i] = th.tid
	}
	tids[have] = -1
	if why := m.counters.takeIn(p, tids, source.NewRoom(9)); !strings.Contains(why, strconv.Itoa(maxDescriptors)+" descriptors") {
		t.Errorf("no descriptors are left: %q", why)
	}
	m.counters.descriptors -= maxDescriptors
	if why := m.counters.takeIn(p, tids, source.NewRoom(0)); !strings.Contains(why, "not counted yet") {
		t.Errorf("no room is left: %q", why)
	}
	if got := len(p.threads); got != have {
		t.Errorf("%d threads are counted, want %d", got, have)
	}
}

func BenchmarkRead(b *testing.B) {
	identity, err := procid.Of(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	var c Counters
	defer func() { _ = c.Close() }() // never fails
	for b.Loop() {
		if err := c.Read(source.Process{Handle: 1, Identity: identity}, nil, source.NewRoom(1000), &source.Measured{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(c.processes[1].threads)), "threads")
}
