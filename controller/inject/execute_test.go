// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// constant is code that returns a number and spoils registers that a function
// need not keep.
func constant(n uint64) []byte {
	code := binary.LittleEndian.AppendUint64([]byte{0x48, 0xb8}, n)
	// xorps %xmm0,%xmm0; xor %edi,%edi; cld; ret
	return append(code, 0x0f, 0x57, 0xc0, 0x31, 0xff, 0xfc, 0xc3)
}

// ownThread returns code that returns the thread's id.
func ownThread() []byte { return []byte{0xb8, unix.SYS_GETTID, 0, 0, 0, 0x0f, 0x05, 0xc3} }

func TestExecute(t *testing.T) {
	for _, what := range []string{"alloc", "compute", "sleep"} {
		for _, anywhere := range []bool{false, true} {
			target := start(t, what, 3)
			process := mustOpen(t, target.PID)
			target.Ask(t, "check") // the first use of the streams maps memory
			before := mappings(t, target.PID)
			for i := range uint64(targets.Fewer(20)) {
				value, result, err := Execute(t.Context(), process, constant(i<<40|7), patiently(ExecuteOptions{Anywhere: anywhere}))
				if err != nil || value != i<<40|7 || result.Stopped <= 0 {
					t.Fatalf("%s, anywhere %v: %#x, %v (%+v)", what, anywhere, value, err, result)
				}
			}
			if got := target.Ask(t, "check"); got != "moved 3 wrong 0 signals 0" {
				t.Errorf("%s, anywhere %v: %s", what, anywhere, got)
			}
			// malloc's threads map and unmap as they please.
			if after := mappings(t, target.PID); what != "alloc" && before != after {
				t.Errorf("%s, anywhere %v: mappings differ:\n%s\n%s", what, anywhere, before, after)
			}
		}
	}
}

// mappings lists all, anonymous ones too.
func mappings(t *testing.T, pid int) string {
	t.Helper()
	maps := files.Read(t, fmt.Sprintf("/proc/%d/maps", pid))
	return string(maps)
}

// What is executed may map memory near a library, where a jump leads: it must not
// find itself there.
func TestExecuteFarFromLibraries(t *testing.T) {
	const far = 1 << 29
	target := start(t, "sleep", 0)
	ownStack := []byte{0x48, 0x89, 0xe0, 0xc3} // mov %rsp,%rax; ret
	stack, _, err := Execute(t.Context(), mustOpen(t, target.PID), ownStack, patiently(ExecuteOptions{Anywhere: true}))
	if err != nil {
		t.Fatal(err)
	}
	all, err := objfile.AllMappings(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if stack+far > m.Start && stack < m.End+far {
			t.Errorf("its stack is at %#x, beside %s at %#x", stack, m.Path, m.Start)
		}
	}
}

func TestExecuteInOneThread(t *testing.T) {
	target := start(t, "compute", 2)
	tids, err := procid.Threads(target.PID)
	if err != nil || len(tids) != 3 {
		t.Fatalf("threads %v, %v", tids, err)
	}
	for _, tid := range tids {
		value, result, err := Execute(t.Context(), mustOpen(t, target.PID), ownThread(), patiently(ExecuteOptions{Thread: tid, Anywhere: true}))
		if err != nil || value != uint64(tid) || result.Thread != tid {
			t.Errorf("thread %d: %d, %v (%+v)", tid, value, err, result)
		}
	}
	if _, _, err := Execute(t.Context(), mustOpen(t, target.PID), make([]byte, MaxCode+1), ExecuteOptions{}); !errors.Is(err, ErrUnsuited) {
		t.Errorf("code that is too long: %v", err)
	}
}

// TestExecuteWithoutSystemCalls: a program that has none cannot make one for us,
// which trying again does not change.
func TestExecuteWithoutSystemCalls(t *testing.T) {
	path := targets.BuildText(t, "silent", "void _start(void) { for (;;) ; }\n", "-nostdlib", "-static")
	cmd := exec.Command(path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	process := mustOpen(t, cmd.Process.Pid)
	var err error
	patience.Until(t, "its being that program", func() bool {
		_, _, err = Execute(t.Context(), process, ownThread(), ExecuteOptions{Anywhere: true})
		return !errors.Is(err, ErrInterrupted)
	})
	if !errors.Is(err, ErrUnsuited) {
		t.Errorf("error %v, want %v", err, ErrUnsuited)
	}
}

// Code that faults is told, and the thread goes on as if nothing had been.
func TestExecuteFault(t *testing.T) {
	target := start(t, "compute", 2)
	ud2 := []byte{0x0f, 0x0b}
	if _, _, err := Execute(t.Context(), mustOpen(t, target.PID), ud2, patiently(ExecuteOptions{})); !errors.Is(err, ErrCall) {
		t.Errorf("ud2: %v", err)
	}
	if got := target.Ask(t, "check"); got != "moved 2 wrong 0 signals 0" {
		t.Error(got)
	}
}

// A program that sleeps goes on sleeping when a thread of it was borrowed, and
// can be borrowed again: its sleep has become another system call.
func TestExecuteInASleeper(t *testing.T) {
	sleeper := exec.Command("sleep", "300")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	})
	process := mustOpen(t, sleeper.Process.Pid)
	waitAsleep(t, process.PID())
	for i := range uint64(5) {
		value, _, err := Execute(t.Context(), process, constant(i), patiently(ExecuteOptions{}))
		if err != nil || value != i {
			t.Fatalf("time %d: %d, %v", i, value, err)
		}
	}
	if !process.Alive() {
		t.Error("it does not sleep any more")
	}
}

// waitAsleep waits until sleep(1) has been loaded and does what it is for.
func waitAsleep(t *testing.T, pid int) {
	t.Helper()
	waitCall(t, pid, unix.SYS_CLOCK_NANOSLEEP)
}

// waitCall waits until a thread is in a certain system call.
func waitCall(t *testing.T, tid int, want int64) {
	t.Helper()
	patience.Until(t, fmt.Sprintf("thread %d to be in system call %d", tid, want), func() bool {
		call, ok := tracer.CurrentCall(tid, tid)
		return ok && call.Number == want
	})
}
