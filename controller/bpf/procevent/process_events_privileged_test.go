// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package procevent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

func mustProcessEvents(t testing.TB, opts Options) *ProcessEvents {
	t.Helper()
	p, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

// mustFollow runs a command whose process and descendants are members of the
// slot, to its end, and returns its id and all events.
func mustFollow(t *testing.T, p *ProcessEvents, slot uint32, command *exec.Cmd) (int, []Event) {
	t.Helper()
	if err := errors.Join(p.AddTo(os.Getpid(), slot), command.Start()); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // its status is in the events
	if err := p.Remove(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	return command.Process.Pid, mustDrain(t, p)
}

// mustDrain returns the events that have happened.
func mustDrain(t *testing.T, p *ProcessEvents) []Event {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // Run hands over what there is, then ends
	var events []Event
	if err := p.Run(ctx, func(event Event) { events = append(events, event) }); err != nil {
		t.Fatal(err)
	}
	return events
}

func TestProcessTreeOf500(t *testing.T) {
	tree := built(t, "tree.c")
	p := mustProcessEvents(t, Options{})
	root, events := mustFollow(t, p, 5, exec.Command(tree, "500"))

	// 500 children, 100 of which have a child, and the root itself.
	const processes = 500 + 100 + 1
	count := make(map[EventKind]int)
	statuses := make(map[unix.WaitStatus]int)
	alive := make(map[int]bool)
	for _, event := range events {
		count[event.Kind]++
		if event.Slot != 5 {
			t.Fatalf("slot %d: %+v", event.Slot, event)
		}
		switch event.Kind {
		case EventFork:
			if alive[event.PID] || event.PID != root && !alive[event.Parent] {
				t.Fatalf("born twice or of nobody: %+v", event)
			}
			alive[event.PID] = true
		case EventExit:
			if !alive[event.PID] {
				t.Fatalf("ends unborn: %+v", event)
			}
			delete(alive, event.PID)
			statuses[event.Status]++
		}
	}
	if count[EventFork] != processes || count[EventExit] != processes || count[EventExec] != 100+1 || len(alive) != 0 {
		t.Errorf("forks, exits, execs = %d, %d, %d, want %d, %d, 101; %d left alive",
			count[EventFork], count[EventExit], count[EventExec], processes, processes, len(alive))
	}
	for status, want := range map[unix.WaitStatus]int{
		unix.WaitStatus(unix.SIGKILL): 100,
		42 << 8:                       1,
		7 << 8:                        100,
		3 << 8:                        100, // of processes whose first thread was not the last
	} {
		// Those that end with their own number add to 42, 7 and 3 sometimes.
		if own := ownStatuses(status); statuses[status] != want+own {
			t.Errorf("%d ended with %#x, want %d", statuses[status], status, want+own)
		}
	}
	if lost := p.Lost(); lost != 0 {
		t.Errorf("lost %d events", lost)
	}
}

// ownStatuses counts the children of tree.c that end with i % 256 == status.
func ownStatuses(status unix.WaitStatus) int {
	n := 0
	for i := 1; i < 500; i += 5 {
		if unix.WaitStatus(i%256)<<8 == status {
			n++
		}
	}
	return n
}

func TestOnlyMembersCauseEvents(t *testing.T) {
	p := mustProcessEvents(t, Options{})
	if err := exec.Command("/bin/true").Run(); err != nil {
		t.Fatal(err)
	}
	if events := mustDrain(t, p); len(events) != 0 {
		t.Errorf("events of strangers: %+v", events)
	}
}

// TestAddAtTheEnd: what has passed the point where its end is told does not become a
// member, nor does whoever has its number next.
func TestAddAtTheEnd(t *testing.T) {
	p := mustProcessEvents(t, Options{})
	command := exec.Command("true")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Wait() }() // its end is as it is
	pid := command.Process.Pid
	patience.Until(t, "a zombie", func() bool {
		stat, err := procid.ReadStat(pid)
		return err == nil && stat.Zombie()
	})
	if err := p.Add(pid); !errors.Is(err, procid.ErrGone) || p.Has(pid) {
		t.Errorf("error %v, a member: %v", err, p.Has(pid))
	}
	if err := errors.Join(p.Add(os.Getpid()), p.Add(os.Getpid())); err != nil || !p.Has(os.Getpid()) {
		t.Errorf("one that lives, twice: %v", err)
	}
}

func TestAddAndRemove(t *testing.T) {
	binary := built(t, "../../uprobe/testdata/target.c")
	tests := []struct {
		name   string
		remove bool
		want   int
	}{
		{"member", false, 1},
		{"no longer a member", true, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := mustProcessEvents(t, Options{})
			target := targets.Start(t, binary)
			if err := p.Add(target.PID); err != nil {
				t.Fatal(err)
			}
			if test.remove {
				if err := p.Remove(target.PID); err != nil {
					t.Fatal(err)
				}
			}
			target.EndWell(t)
			events := mustDrain(t, p)
			if len(events) != test.want || test.want == 1 && (events[0].Kind != EventExit || events[0].PID != target.PID) {
				t.Errorf("events %+v, want %d exits of %d", events, test.want, target.PID)
			}
			if err := p.Remove(target.PID); err != nil {
				t.Errorf("remove what is gone: %v", err)
			}
		})
	}
}

func TestEventDetails(t *testing.T) {
	p := mustProcessEvents(t, Options{})
	command := exec.Command("/bin/sh", "-c", "exit 9")
	command.SysProcAttr = &unix.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	before := uint64(clock.Monotonic())
	pid, events := mustFollow(t, p, 0, command)
	if len(events) != 3 {
		t.Fatalf("events %+v", events)
	}
	for i, kind := range []EventKind{EventFork, EventExec, EventExit} {
		event := events[i]
		if event.Kind != kind || event.PID != pid || event.Parent != unix.Getpid() {
			t.Errorf("event %d = %+v, want %v of %d", i, event, kind, pid)
		}
		if event.Time < before || event.Start != events[0].Start || event.StartTicks() == 0 {
			t.Errorf("event %d at %d, started %v", i, event.Time, event.Start)
		}
		before = event.Time
	}
	exit := events[2]
	if exit.Status.ExitStatus() != 9 || exit.UID != 65534 || exit.Command != "sh" {
		t.Errorf("exit = %+v", exit)
	}
}

// built is a program of testdata.
func built(t testing.TB, source string) string {
	t.Helper()
	return targets.Build(t, "testdata/"+source, "-O2")
}

func TestLossIsCounted(t *testing.T) {
	tree := built(t, "tree.c")
	p := mustProcessEvents(t, Options{RingBytes: 4096, MaxProcesses: 1 << 12})
	_, events := mustFollow(t, p, 0, exec.Command(tree, "100"))
	lost := p.Lost()
	const all = 2*(100+20+1) + 20 + 1 // forks and exits, execs
	if lost == 0 || int(lost)+len(events) != all {
		t.Errorf("received %d, lost %d, want %d in all", len(events), lost, all)
	}
}

func TestTooManyMembersAreCounted(t *testing.T) {
	tree := built(t, "tree.c")
	p := mustProcessEvents(t, Options{MaxProcesses: 2}) // this process and the tree's first
	_, events := mustFollow(t, p, 0, exec.Command(tree, "5"))
	if lost := p.Lost(); lost != 5 || len(events) != 3 {
		t.Errorf("lost %d, want the 5 that found no room; events %+v", lost, events)
	}
}

// TestSharesOfMembers: whoever forks without end takes no room from others, hears of what is not
// followed, and has room again when those have ended.
func TestSharesOfMembers(t *testing.T) {
	const room, forks, greedy, modest = 64, 200, 5, 6
	p := mustProcessEvents(t, Options{NodeWide: true, MaxProcesses: room})
	command := exec.Command("sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 1000 & i=$((i+1)); done; echo ready; read line; kill 0", forks))
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.AddTo(os.Getpid(), greedy); err != nil {
		t.Fatal(err)
	}
	hog := targets.StartCommand(t, command)
	if err := p.AddTo(1, greedy); !errors.Is(err, ErrShare) {
		t.Errorf("add one more: %v", err)
	}
	if err := p.Remove(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	// The shell, and this process meanwhile, are members, too.
	if refused := p.Refused(greedy); refused != forks-(room/2-2) {
		t.Errorf("%d of %d forks beyond the share are refused, want %d", refused, forks, forks-(room/2-2))
	}
	_, events := mustFollow(t, p, modest, exec.Command("sh", "-c", "/bin/true; /bin/true; :"))
	born := 0
	for _, event := range events {
		if event.Kind == EventFork && event.Slot == modest {
			born++
		}
	}
	if born != 3 || p.Refused(modest) != 0 || p.Lost() != 0 {
		t.Errorf("%d processes of another are told of, want 3; %d refused, %d lost", born, p.Refused(modest), p.Lost())
	}
	hog.CloseInput()
	_ = hog.Wait() // killed
	patience.Until(t, "all members to be gone", func() bool {
		return atomic.LoadInt64(p.shares.members(greedy)) == 0 && atomic.LoadInt64(p.shares.members(Shares)) == 0
	})
}

// The programs read kernel memory through pointers that they are given. A
// wrong one must make them see zeros, not fail.
func TestProgramsSurviveBadPointers(t *testing.T) {
	p := mustProcessEvents(t, Options{})
	for _, program := range []*ebpf.Program{p.objects.Fork, p.objects.Exec, p.objects.Exit} {
		got, err := program.Run(&ebpf.RunOptions{Context: [3]uint64{0, 1 << 47, 1 << 47}})
		if err != nil || got != 0 {
			t.Errorf("%v returns %d, %v", program, got, err)
		}
	}
	if events := mustDrain(t, p); len(events) != 0 {
		t.Errorf("events %+v", events)
	}
}

func TestRunEndsWithClose(t *testing.T) {
	p := mustProcessEvents(t, Options{})
	ended := make(chan error)
	go func() { ended <- p.Run(t.Context(), func(Event) {}) }()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience.Limit):
		t.Fatal("still running")
	}
}

func TestProcessEventsLeaveNoDescriptor(t *testing.T) {
	mustProcessEvents(t, Options{}).Close() // the library caches
	before := len(leaktest.Descriptors())
	for range targets.Fewer(50) {
		p, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if after := len(leaktest.Descriptors()); after > before {
		t.Errorf("descriptors %d, then %d", before, after)
	}
}

func BenchmarkProcessEvents(b *testing.B) {
	var closing time.Duration
	for b.Loop() {
		p, err := New(Options{})
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
		closing += time.Since(start)
	}
	b.ReportMetric(float64(closing.Nanoseconds())/float64(b.N), "close-ns/op")
}
