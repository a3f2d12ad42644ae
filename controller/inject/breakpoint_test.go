// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/debugregs"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

const allWell = "wrong 0, all go on"

func startVisits(t *testing.T, threads int) *targets.Target {
	t.Helper()
	return targets.StartProgram(t, "visits", strconv.Itoa(threads))
}

func addressOf(t *testing.T, pid int, name string, kind objfile.SymbolKind) uint64 {
	t.Helper()
	found, err := objfile.Resolve(pid, "visits", name, kind)
	if err != nil {
		t.Fatal(err)
	}
	return found.Address
}

// eachBreakpoint runs a test with each kind of breakpoint that works here.
func eachBreakpoint(t *testing.T, run func(t *testing.T)) {
	for _, kind := range []struct {
		name   string
		probed bool
		why    string
	}{
		{"registers", false, whyNoRegisters()},
		{"probed", true, whyNoProbes()},
	} {
		t.Run(kind.name, func(t *testing.T) {
			if kind.why != "" {
				t.Skip(kind.why)
			}
			useBreakpoints(t, kind.probed)
			run(t)
		})
	}
}

// useBreakpoints chooses the kind of breakpoint.
func useBreakpoints(t *testing.T, probed bool) {
	before := debugRegistersDead
	debugRegistersDead = func() bool { return probed }
	t.Cleanup(func() { debugRegistersDead = before })
}

func whyNoRegisters() string {
	if debugregs.Dead() {
		return "the debug registers of this machine stop nobody"
	}
	return ""
}

func whyNoProbes() string {
	if os.Geteuid() != 0 {
		return "a uprobe needs root"
	}
	return ""
}

// load returns code that returns a word of memory.
func load(address uint64) []byte {
	code := binary.LittleEndian.AppendUint64([]byte{0x48, 0xb8}, address)
	return append(code, 0x48, 0x8b, 0x00, 0xc3) // mov (%rax),%rax; ret
}

// The thread that comes to a function first does it at the entry, the program
// notices nothing, and no breakpoint is left.
func TestExecuteAtEntry(t *testing.T) { eachBreakpoint(t, testExecuteAtEntry) }

func testExecuteAtEntry(t *testing.T) {
	for _, threads := range []int{1, 4, 40} {
		target := startVisits(t, threads)
		process := mustOpen(t, target.PID)
		at := addressOf(t, target.PID, "visited", objfile.Function)
		for i := range uint64(targets.Fewer(20)) {
			begun := time.Now()
			value, result, err := Execute(t.Context(), process, constant(i), patiently(ExecuteOptions{At: at}))
			if err != nil || value != i || result.Thread == 0 || result.Stopped <= 0 || result.Stopped > time.Since(begun) {
				t.Fatalf("%d threads, round %d: %d, %v (%+v)", threads, i, value, err, result)
			}
		}
		if got := target.Ask(t, "check"); got != allWell {
			t.Errorf("%d threads: %s", threads, got)
		}
	}
}

// At the entry of once() the number of steps is even, where it returns to odd;
// a recursive call's return is none.
func TestExecuteAtExit(t *testing.T) { eachBreakpoint(t, testExecuteAtExit) }

func testExecuteAtExit(t *testing.T) {
	target := startVisits(t, 1)
	process := mustOpen(t, target.PID)
	at, steps := addressOf(t, target.PID, "once", objfile.Function), addressOf(t, target.PID, "steps", objfile.Variable)
	for i := range targets.Fewer(30) {
		if value, _, err := Execute(t.Context(), process, load(steps), patiently(ExecuteOptions{At: at, AtExit: true})); err != nil || value%2 != 1 {
			t.Errorf("round %d, exit: %d steps, %v", i, value, err)
		}
	}
	if got := target.Ask(t, "check"); got != allWell {
		t.Error(got)
	}
}

// TestExecuteAtExitSparesExceptions: a return probe would end a program whose
// exceptions pass the function; a breakpoint in a debug register is none.
func TestExecuteAtExitSparesExceptions(t *testing.T) {
	if why := whyNoProbes(); why != "" {
		t.Skip(why)
	}
	useBreakpoints(t, true)
	target := targets.Start(t, targets.BuildWith(t, "g++", "thrown", "-O2", "../testdata/thrown.cc"))
	at, err := objfile.Resolve(target.PID, "thrown", "passed", objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Execute(t.Context(), mustOpen(t, target.PID), constant(1), ExecuteOptions{At: at.Address, AtExit: true, Patience: time.Second})
	if !errors.Is(err, ErrUnsuited) || !errors.Is(err, objfile.ErrThrows) {
		t.Errorf("at the exit of a function that exceptions pass: %v", err)
	}
	if got := target.Ask(t, "10"); got != "5 caught" {
		t.Errorf("the program: %s", got)
	}
}

func TestExecuteAtEntryInOneThread(t *testing.T) { eachBreakpoint(t, testExecuteAtEntryInOneThread) }

func testExecuteAtEntryInOneThread(t *testing.T) {
	target := startVisits(t, 3)
	tids, err := procid.Threads(target.PID)
	if err != nil || len(tids) != 4 {
		t.Fatalf("threads %v, %v", tids, err)
	}
	at := addressOf(t, target.PID, "visited", objfile.Function)
	for _, tid := range tids {
		options := patiently(ExecuteOptions{At: at, Thread: tid})
		if tid == target.PID { // it only waits for us
			options.Patience = 300 * time.Millisecond
		}
		value, result, err := Execute(t.Context(), mustOpen(t, target.PID), ownThread(), options)
		if tid == target.PID {
			if !errors.Is(err, ErrNoSafePoint) {
				t.Errorf("a thread that never comes there: %d, %v", value, err)
			}
			continue
		}
		if err != nil || value != uint64(tid) || result.Thread != tid {
			t.Errorf("thread %d: %d, %v", tid, value, err)
		}
	}
	if got := target.Ask(t, "check"); got != allWell {
		t.Error(got)
	}
}

// What stands against a breakpoint is said, and nothing is left behind.
func TestExecuteAtRefuses(t *testing.T) {
	useBreakpoints(t, false)
	tests := []struct {
		name, before, function string
		err                    error
	}{
		{"never called", "", "never", ErrNoSafePoint},
		{"ignores the signal", "ignore", "visited", ErrUnsuited},
		{"uses all debug registers", "use 4", "visited", ErrUnsuited},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target := startVisits(t, 1)
			if tt.before != "" {
				target.Ask(t, tt.before)
			}
			at := addressOf(t, target.PID, tt.function, objfile.Function)
			options := patiently(ExecuteOptions{At: at})
			if errors.Is(tt.err, ErrNoSafePoint) {
				options.Patience = 200 * time.Millisecond
			}
			_, _, err := Execute(t.Context(), mustOpen(t, target.PID), constant(1), options)
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if got := target.Ask(t, "check"); got != allWell {
				t.Error(got)
			}
		})
	}
}

// A program that has debug registers of its own keeps them.
func TestExecuteBesideOwnBreakpoints(t *testing.T) {
	eachBreakpoint(t, testExecuteBesideOwnBreakpoints)
}

func testExecuteBesideOwnBreakpoints(t *testing.T) {
	target := startVisits(t, 1)
	target.Ask(t, "use 3")
	at := addressOf(t, target.PID, "visited", objfile.Function)
	for i := range uint64(5) {
		if value, _, err := Execute(t.Context(), mustOpen(t, target.PID), constant(i), patiently(ExecuteOptions{At: at})); err != nil || value != i {
			t.Errorf("round %d: %d, %v", i, value, err)
		}
	}
	if got := target.Ask(t, "check"); got != allWell {
		t.Error(got)
	}
}

const (
	ambushVariable = "ATTUNE_TEST_AMBUSH"
	probedVariable = "ATTUNE_TEST_PROBED"
)

// TestAmbushHelper waits at a function that is never called, until it is
// killed.
func TestAmbushHelper(t *testing.T) {
	pid, err := strconv.Atoi(os.Getenv(ambushVariable))
	if err != nil {
		return // part of TestKilledInAmbush
	}
	useBreakpoints(t, os.Getenv(probedVariable) != "")
	at := addressOf(t, pid, "visited", objfile.Function)
	if os.Getenv("ATTUNE_TEST_NEVER") != "" {
		at = addressOf(t, pid, "never", objfile.Function)
	}
	fmt.Println("waiting")
	for {
		_, _, err := Execute(t.Context(), mustOpen(t, pid), constant(1), ExecuteOptions{At: at, Patience: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A controller that is killed while it waits leaves no breakpoint.
func TestKilledInAmbush(t *testing.T) { eachBreakpoint(t, testKilledInAmbush) }

func testKilledInAmbush(t *testing.T) {
	target := startVisits(t, 4)
	for i := range 10 {
		helper := exec.Command(os.Args[0], "-test.run=^TestAmbushHelper$")
		helper.Env = append(os.Environ(), ambushVariable+"="+strconv.Itoa(target.PID), "ATTUNE_TEST_NEVER=1")
		if debugRegistersDead() {
			helper.Env = append(helper.Env, probedVariable+"=1")
		}
		out, err := helper.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := helper.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 7)); err != nil {
			t.Fatal(err)
		}
		waitTraced(t, target.PID)
		time.Sleep(time.Duration(i) * 300 * time.Microsecond)
		if err := helper.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = helper.Wait() // killed
		if got := target.Ask(t, "check"); got != allWell {
			t.Error(got)
		}
	}
	at := addressOf(t, target.PID, "visited", objfile.Function)
	if _, _, err := Execute(t.Context(), mustOpen(t, target.PID), constant(1), patiently(ExecuteOptions{At: at})); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func waitStopped(t *testing.T, pid, tid int) {
	t.Helper()
	patience.Until(t, fmt.Sprintf("thread %d to stop", tid), func() bool {
		s, err := procid.ReadThread(pid, tid)
		return err == nil && s.State == 'T'
	})
}

// waitTraced waits until a process has a tracer.
func waitTraced(t *testing.T, pid int) {
	t.Helper()
	patience.Until(t, "its tracer", func() bool {
		s, err := procid.ReadStatus(pid)
		return err == nil && s.Tracer != 0
	})
}
