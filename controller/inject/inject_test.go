// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// bench is what an injection needs.
type bench struct{ options Options }

func newBench(t *testing.T) *bench {
	t.Helper()
	library, err := dmlib.Install(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cache := objfile.NewCache()
	t.Cleanup(func() { _ = cache.Close() })
	return &bench{Options{Library: library, Cache: cache, patience: patience.Limit, timeout: patience.Limit}}
}

// patiently has the search for a thread and the call take as long as a crowded machine needs.
func patiently(o ExecuteOptions) ExecuteOptions {
	o.Patience, o.Timeout = patience.Limit, cmp.Or(o.Timeout, patience.Limit)
	return o
}

// inject brings DMLib in.
func (b *bench) inject(t *testing.T, pid int) Result {
	t.Helper()
	result, err := Inject(t.Context(), mustOpen(t, pid), b.options)
	if err != nil {
		t.Fatalf("inject: %v (%+v)", err, result)
	}
	if app := result.Memory.App(); !app.Ready {
		t.Fatalf("memory %+v is not ready", app)
	}
	return result
}

func free(t *testing.T, r Result) {
	t.Helper()
	if err := r.Memory.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t *testing.T, pid int) *proc.Handle {
	t.Helper()
	process, err := proc.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Close() })
	return process
}

// start runs the busy program.
func start(t *testing.T, what string, threads int, more ...string) *targets.Target {
	t.Helper()
	return targets.StartProgram(t, "busy", append([]string{what, strconv.Itoa(threads)}, more...)...)
}

func TestInjectWhateverThreadsDo(t *testing.T) {
	for _, row := range []struct {
		name, what string
		threads    int
		stack      string
	}{
		{"sleeping", "sleep", 1, ""},
		{"computing", "compute", 2, ""},
		{"allocating", "alloc", 4, ""},
		{"sorting with a callback", "qsort", 2, ""},
		{"printing", "printf", 2, ""},
		{"on the smallest stacks", "alloc", 4, "16384"},
		{"fifty threads", "sleep", 50, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t)
			target := start(t, row.what, row.threads, strings.Fields(row.stack)...)
			b.options.among = notMain(target)
			target.Ask(t, "check") // all threads are past their start
			before := descriptors(t, target.PID)
			result := b.inject(t, target.PID)
			defer free(t, result)
			t.Logf("%+v", result)
			if want := fmt.Sprintf("moved %d wrong 0 signals 0", row.threads); target.Ask(t, "check") != want {
				t.Errorf("the program is not as it was")
			}
			if after := descriptors(t, target.PID); after != before {
				t.Errorf("descriptors before %d, after %d", before, after)
			}
			target.EndWell(t)
		})
	}
}

// notMain leaves the main thread out, which waits in read and makes it easy.
func notMain(target *targets.Target) func(int) bool {
	return func(tid int) bool { return tid != target.PID }
}

func descriptors(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestHooksCountAfterwards(t *testing.T) {
	for name, flags := range map[string][]string{
		"position-independent": nil,
		"bound at start":       {"-Wl,-z,now", "-Wl,-z,relro"},
		// Such a program has PLT entries for functions whose address it takes,
		// and dlsym answers with these.
		"at fixed addresses": {"-no-pie", "-fno-pie", "-DTAKE_ADDRESS"},
	} {
		t.Run(name, func(t *testing.T) {
			countsAfterwards(t, targets.Program(t, "busy", flags...))
		})
	}
}

func countsAfterwards(t *testing.T, program string) {
	t.Helper()
	b := newBench(t)
	target := targets.StartCommand(t, exec.Command(program, "alloc", "2"))
	result := b.inject(t, target.PID)
	defer free(t, result)
	if len(result.Slots) == 0 {
		t.Fatal("no GOT slot leads to a hook")
	}
	hook, _ := shm.HookByName("malloc")
	if err := result.Memory.SetPoint(hook.Index, shm.PointControl{Point: 7, Aggregate: true}); err != nil {
		t.Fatal(err)
	}
	clock := shm.NewClock()
	patience.Until(t, "calls of malloc that are counted", func() bool {
		var count uint64
		for _, g := range result.Memory.Aggregates(nil, clock.Scale()) {
			count += g.Count
		}
		return count > 1000
	})
	if got := target.Ask(t, "check"); got != "moved 2 wrong 0 signals 0" {
		t.Errorf("program says %q", got)
	}
}

// TestEnvironmentStays: other threads of a program may look at its environment or change
// it, and what it holds may be constant.
func TestEnvironmentStays(t *testing.T) {
	b := newBench(t)
	target := targets.StartProgram(t, "environment")
	free(t, b.inject(t, target.PID))
	target.Right(t)
	target.Finish(t)
}

// TestManyRounds: nothing is left. `make bench-inject` makes a thousand.
func TestManyRounds(t *testing.T) {
	const warmUp = 5 // the C library keeps the stack of a thread that has ended
	rounds := targets.Fewer(60)
	b := newBench(t)
	target := start(t, "alloc", 4)
	b.options.among = notMain(target)
	var mappings, fds int
	for round := range warmUp + rounds {
		if round == warmUp {
			mappings, fds = mapped(t, target.PID), descriptors(t, target.PID)
		}
		result := b.inject(t, target.PID)
		if stayed := GiveBack(t.Context(), result.Memory, result.Slots); len(stayed) > 0 {
			t.Errorf("slots %v stayed", stayed)
		}
		free(t, result)
	}
	if now := mapped(t, target.PID); now != mappings {
		t.Errorf("mappings of DMLib: %d after the first rounds, %d after %d more", mappings, now, rounds)
	}
	if now := descriptors(t, target.PID); now != fds {
		t.Errorf("descriptors %d after the first rounds, %d after %d more", fds, now, rounds)
	}
	if got := target.Ask(t, "check"); got != "moved 4 wrong 0 signals 0" {
		t.Errorf("program says %q", got)
	}
	if now := threads(t, target.PID); now != 5 {
		t.Errorf("%d threads, want 5", now)
	}
}

func thisOwner(t *testing.T) shm.Owner {
	t.Helper()
	owner, err := shm.ThisProcess()
	if err != nil {
		t.Fatal(err)
	}
	return owner
}

// mapped counts mappings that are files of ours; the program's own come and go.
func mapped(t *testing.T, pid int) (n int) {
	t.Helper()
	content := files.Read(t, fmt.Sprintf("/proc/%d/maps", pid))
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, "libattune-dm") || strings.Contains(line, "/memfd:") {
			n++
		}
	}
	return n
}

func threads(t *testing.T, pid int) int {
	t.Helper()
	tids, err := procid.Threads(pid)
	if err != nil {
		t.Fatal(err)
	}
	return len(tids)
}

func TestSignalsDuringInjection(t *testing.T) {
	b := newBench(t)
	target := start(t, "compute", 2)
	b.options.among = notMain(target)
	stop, sent := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				sent <- n
				return
			case <-time.After(200 * time.Microsecond):
				if unix.Kill(target.PID, unix.SIGUSR1) == nil {
					n++
				}
			}
		}
	}()
	for range 20 {
		free(t, b.inject(t, target.PID))
	}
	close(stop)
	if <-sent == 0 {
		t.Fatal("no signal was sent")
	}
	got := target.Ask(t, "check")
	if !strings.HasPrefix(got, "moved 2 wrong 0") || strings.HasSuffix(got, "signals 0") {
		t.Errorf("program says %q", got)
	}
}

// TestExecBeforeTheStop: the thread that is stopped executes another program than the
// one that was to be entered, and goes on as if nothing had been.
func TestExecBeforeTheStop(t *testing.T) {
	b := newBench(t)
	target := targets.StartProgram(t, "plain")
	executed := false
	b.options.among = func(int) bool {
		if !executed {
			executed = true
			if err := target.Say("exec"); err != nil {
				t.Error(err)
			}
			target.Expect(t, "ready")
		}
		return true
	}
	if _, err := Inject(t.Context(), mustOpen(t, target.PID), b.options); !errors.Is(err, ErrInterrupted) {
		t.Errorf("error %v, want %v", err, ErrInterrupted)
	}
	if got := mapped(t, target.PID); got != 0 {
		t.Errorf("%d mappings of DMLib", got)
	}
	target.Right(t)
	target.Finish(t)
}

func TestStoppedProcessStaysStopped(t *testing.T) {
	b := newBench(t)
	target := start(t, "sleep", 1)
	if err := unix.Kill(target.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	state := func() byte {
		s, err := procid.ReadStatus(target.PID)
		if err != nil {
			t.Fatal(err)
		}
		return s.State
	}
	waitStopped(t, target.PID, target.PID)
	b.options.patience = 200 * time.Millisecond // it is in vain
	if _, err := Inject(t.Context(), mustOpen(t, target.PID), b.options); !errors.Is(err, ErrUnsuited) {
		t.Errorf("error %v, want %v", err, ErrUnsuited)
	}
	if got := state(); got != 'T' {
		t.Errorf("state %c, want T", got)
	}
}

// A program that is being loaded has no C library yet, and is waited for. Here its loader
// waits itself, for what is to be preloaded, until it was seen.
func TestInjectWhileLoading(t *testing.T) {
	b := newBench(t)
	slow := filepath.Join(t.TempDir(), "slow.so")
	if err := unix.Mkfifo(slow, 0o600); err != nil {
		t.Fatal(err)
	}
	target := targets.Launch(t, exec.Command("env", "LD_PRELOAD="+slow, targets.Program(t, "plain")))
	patience.Until(t, "a loader that waits", func() bool {
		wait, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", target.PID))
		return err == nil && string(wait) == "wait_for_partner"
	})
	loading, err := b.options.Cache.Images(target.PID)
	if err != nil || slices.ContainsFunc(loading, objfile.Image.IsLibc) {
		t.Fatalf("it is loaded already, %v", err)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		if err := os.WriteFile(slow, nil, 0); err != nil {
			t.Error(err)
		}
	}()
	free(t, b.inject(t, target.PID))
}
