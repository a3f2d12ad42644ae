// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// dyingAt ends the tracer at the n-th of the places where it may.
type dyingAt struct {
	n, count int
	where    string // it ended; "": it did not
}

func (d *dyingAt) died(where string) bool {
	if d.count++; d.count != d.n {
		return false
	}
	d.where = where
	return true
}

// everyDeath enters with a tracer that dies at the first place, at the second,
// and so on until it lives, and returns where.
func everyDeath(t *testing.T, enter func(died func(string) bool) error, right func()) (places []string) {
	t.Helper()
	for n := 1; ; n++ {
		d := &dyingAt{n: n}
		switch err := enter(d.died); {
		case d.where == "" && err == nil:
			right()
			return places
		case d.where == "" || !errors.Is(err, tracer.ErrDied):
			t.Fatalf("place %d, %q: %v, want %v", n, d.where, err, tracer.ErrDied)
		}
		places = append(places, d.where)
		right()
	}
}

// A tracer may die at any place of the call: the thread puts itself back, and
// what it started ends when nobody answers.
func TestTracerThatDies(t *testing.T) {
	for _, row := range []struct{ what, stack string }{
		{"compute", ""}, {"alloc", ""}, {"sleep", ""}, {"compute", "16384"},
	} {
		t.Run(row.what+row.stack, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			b := newBench(t)
			target := start(t, row.what, 2, strings.Fields(row.stack)...)
			b.options.among = notMain(target)
			target.Ask(t, "check") // all threads are past their start
			places := everyDeath(t, func(died func(string) bool) error {
				b.options.died = died
				result, err := Inject(t.Context(), mustOpen(t, target.PID), b.options)
				if err == nil {
					free(t, result)
				}
				return err
			}, func() {
				if got := target.Ask(t, "check"); row.what == "sleep" && strings.HasPrefix(got, "moved 2") {
					return // its sleeps were cut short: the kernel has forgotten their end
				} else if got != "moved 2 wrong 0 signals 0" {
					t.Errorf("program says %q", got)
				}
			})
			if len(places) != 6 {
				t.Errorf("a tracer dies at %q, want 6 places", places)
			}
			patience.Until(t, "three threads", func() bool { return threads(t, target.PID) == 3 })
		})
	}
}

// allRight asks the program whether it does what it did.
func allRight(t *testing.T, target *targets.Target, threads int) {
	t.Helper()
	want := fmt.Sprintf("moved %d wrong 0 signals 0", threads)
	if got := target.Ask(t, "check"); got != want {
		t.Errorf("program says %q, want %q", got, want)
	}
}

// executeDying is Execute with a tracer that may die.
func executeDying(t *testing.T, pid int, died func(string) bool, o ExecuteOptions) error {
	t.Helper()
	process := mustOpen(t, pid)
	e, err := newExecution(process, ownThread(), o, died)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.run(t.Context())
	return err
}

// The borrowed thread does all of the work, takes the mapping away, and it is
// the first one, in a system call.
func TestTracerThatDiesExecuting(t *testing.T) {
	target := start(t, "compute", 3)
	for _, o := range []ExecuteOptions{{}, {Anywhere: true}, {Anywhere: true, Thread: target.PID}} {
		places := everyDeath(t, func(died func(string) bool) error {
			return executeDying(t, target.PID, died, o)
		}, func() { allRight(t, target, 3) })
		if len(places) != 10 {
			t.Errorf("a tracer dies at %q, want 10 places", places)
		}
	}
	target.EndWell(t)
}

// TestLifelineIsTakenAway: what lies below the stack is as it was.
func TestLifelineIsTakenAway(t *testing.T) {
	target := start(t, "sleep", 1)
	target.Ask(t, "check")
	waitCall(t, target.PID, unix.SYS_READ)
	below := func() []byte {
		t.Helper()
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", target.PID, target.PID))
		fields := strings.Fields(string(text))
		if err != nil || len(fields) < 9 {
			t.Fatalf("it is not in a system call: %q, %v", text, err)
		}
		pointer, err := strconv.ParseUint(fields[7], 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		content := make([]byte, 8<<10)
		if n := mustOpen(t, target.PID).ReadSome(pointer-uint64(len(content)), content); n != len(content) {
			t.Fatalf("%d bytes read", n)
		}
		return content
	}
	before := below()
	if err := executeDying(t, target.PID, nil, ExecuteOptions{Anywhere: true, Thread: target.PID}); err != nil {
		t.Fatal(err)
	}
	waitCall(t, target.PID, unix.SYS_READ)
	if after := below(); string(after) != string(before) {
		t.Error("bytes below the stack differ")
	}
}

const tortured = "ATTUNE_TEST_TORTURED" // the process that TestTorturer enters

// TestTorturer is the process that TestTracerIsKilled kills.
func TestTorturer(t *testing.T) {
	pid, err := strconv.Atoi(os.Getenv(tortured))
	if err != nil {
		return // it runs in a process of its own
	}
	process := mustOpen(t, pid)
	var executions [2]*execution // made once: the more of the time a thread is held
	for i := range executions {
		if executions[i], err = newExecution(process, ownThread(), ExecuteOptions{Anywhere: i == 1, Patience: patience.Limit}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; ; i++ {
		if _, err := executions[i%len(executions)].run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i == len(executions) {
			fmt.Println("works")
		}
	}
}

// TestTracerIsKilled: by the kernel, at any moment.
func TestTracerIsKilled(t *testing.T) {
	target := start(t, "compute", 3)
	for range targets.Fewer(40) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTorturer$")
		cmd.Env = append(os.Environ(), tortured+"="+strconv.Itoa(target.PID))
		output, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 100)
		if n, err := output.Read(line); err != nil || string(line[:n]) != "works\n" {
			t.Fatalf("it says %q, %v", line[:n], err)
		}
		time.Sleep(time.Duration(rand.IntN(10_000)) * time.Microsecond)
		if err := cmd.Process.Signal(unix.SIGKILL); err != nil {
			t.Fatal("it ended by itself:", err)
		}
		if err := cmd.Wait(); cmd.ProcessState.Exited() {
			t.Fatal("it ended by itself:", err)
		}
		allRight(t, target, 3)
	}
	target.EndWell(t)
}
