// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// Code of the target "rewritten", and what is written over it.
var (
	codeOfValue  = []byte{0x31, 0xc0, 0xff, 0xc0, 0x90}
	codeOfCircle = []byte{0x31, 0xc0, 0x3b, 0x07, 0x75}
	otherCode    = []byte{0xb8, 2, 0, 0, 0} // mov $2, %eax
)

// rewritten is the target "rewritten".
type rewritten struct {
	*targets.Target
	process *proc.Handle
}

func startRewritten(t *testing.T) *rewritten {
	t.Helper()
	target := targets.StartProgram(t, "rewritten")
	process, err := proc.Open(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Close() })
	return &rewritten{target, process}
}

func (r *rewritten) address(t *testing.T, name string) uint64 {
	t.Helper()
	found, err := objfile.Resolve(r.PID, "rewritten", name, objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	return found.Address
}

// exchange changes a function's code, again and again while the threads are too
// busy, as they may be on a machine that is.
func (r *rewritten) exchange(t *testing.T, name string, from, to []byte) (result Rewritten) {
	t.Helper()
	return r.unlessBusy(t, nil, proc.Change{Address: r.address(t, name), From: from, To: to})
}

// unlessBusy makes changes again and again while the threads are too busy, as they may be
// on a machine that is, and says that this ends with an error.
func (r *rewritten) unlessBusy(t *testing.T, want error, changes ...proc.Change) (result Rewritten) {
	t.Helper()
	patience.Until(t, "threads that can be stopped", func() bool {
		var err error
		result, err = Rewrite(t.Context(), r.process, changes...)
		if !errors.Is(err, want) && !errors.Is(err, ErrBusy) {
			t.Fatalf("got %v, want %v", err, want)
		}
		return errors.Is(err, want)
	})
	return result
}

// stands says whether code is that.
func (r *rewritten) stands(t *testing.T, name string, want []byte) bool {
	t.Helper()
	got := make([]byte, len(want))
	return r.process.Read(r.address(t, name), got) == nil && bytes.Equal(got, want)
}

// mustStand says that code is what it should be.
func (r *rewritten) mustStand(t *testing.T, name string, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if err := r.process.Read(r.address(t, name), got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("code of %s: % x, %v; want % x", name, got, err, want)
	}
}

// Threads execute the code all the time and find it old or new, and those that
// wait in the kernel do not notice.
func TestRewriteUnderThreads(t *testing.T) {
	r := startRewritten(t)
	r.Ask(t, "hammer 4")
	r.Ask(t, "wait")
	var stopped []time.Duration
	for range targets.Fewer(100) {
		for _, code := range [][2][]byte{{codeOfValue, otherCode}, {otherCode, codeOfValue}} {
			result := r.exchange(t, "value", code[0], code[1])
			stopped = append(stopped, result.Stopped)
			if result.Threads != 8 {
				t.Fatalf("%d threads were held, want 8", result.Threads)
			}
		}
	}
	r.mustStand(t, "value", codeOfValue)
	if got := r.Ask(t, "halt"); got != "0 wrong, 0 interrupted" {
		t.Error(got)
	}
	t.Logf("8 threads were stopped for %v (median)", median(stopped))
	r.EndWell(t)
}

// A thread within the code, or whom a signal took away from there, stands
// against a change.
func TestRewriteSparesWhoIsWithin(t *testing.T) {
	r := startRewritten(t)
	r.Ask(t, "park")
	for _, where := range []string{"in circles", "signal"} {
		if where == "signal" {
			r.Ask(t, where)
		}
		_, err := Rewrite(t.Context(), r.process, proc.Change{Address: r.address(t, "circle"), From: codeOfCircle, To: otherCode})
		if !errors.Is(err, ErrBusy) { // for whatever reason
			t.Errorf("%s: %v", where, err)
		}
		r.mustStand(t, "circle", codeOfCircle)
	}
	r.Ask(t, "leave")
	if got := r.Ask(t, "halt"); got != "0 wrong, 0 interrupted" {
		t.Error(got)
	}
	r.exchange(t, "circle", codeOfCircle, otherCode)
	r.mustStand(t, "circle", otherCode)
}

// Of several changes those are made that nobody is in the way of, in one stop; the error
// is about the others.
func TestRewriteSeveral(t *testing.T) {
	r := startRewritten(t)
	r.Ask(t, "park")
	value := proc.Change{Address: r.address(t, "value"), From: codeOfValue, To: otherCode}
	circle := proc.Change{Address: r.address(t, "circle"), From: codeOfCircle, To: otherCode}
	patience.Until(t, "threads that can be stopped", func() bool {
		if _, err := Rewrite(t.Context(), r.process, circle, value); !errors.Is(err, ErrBusy) {
			t.Fatalf("with a thread within one of two: %v", err)
		}
		return r.stands(t, "value", otherCode)
	})
	r.mustStand(t, "circle", codeOfCircle)
	r.Ask(t, "leave")
	if got := r.Ask(t, "halt"); got != "0 wrong, 0 interrupted" {
		t.Error(got)
	}
	back := proc.Change{Address: value.Address, From: otherCode, To: codeOfValue}
	r.unlessBusy(t, nil, back, circle)
	r.mustStand(t, "value", codeOfValue)
	r.mustStand(t, "circle", otherCode)
	r.unlessBusy(t, ErrUnsuited, value, circle) // one of two is other code
	r.mustStand(t, "value", otherCode)
}

// Many threads are held together, too many are refused before any is stopped.
func TestRewriteManyThreads(t *testing.T) {
	r := startRewritten(t)
	r.Ask(t, "sleep 100")
	result := r.exchange(t, "value", codeOfValue, otherCode)
	t.Logf("%d threads were stopped for %v, in try %d", result.Threads, result.Stopped, result.Tries)
	if result.Threads != 101 {
		t.Errorf("%d threads were held, want 101", result.Threads)
	}
	r.Ask(t, "sleep 1900")
	result, err := Rewrite(t.Context(), r.process, proc.Change{Address: r.address(t, "value"), From: otherCode, To: codeOfValue})
	if !errors.Is(err, ErrUnsuited) || !strings.Contains(err.Error(), "2001 threads") || result.Stopped != 0 {
		t.Errorf("%+v, %v", result, err)
	}
	if got := r.Ask(t, "value"); got != "2" {
		t.Errorf("value is %s, want 2", got)
	}
	if got := r.Ask(t, "halt"); got != "0 wrong, 0 interrupted" {
		t.Error(got)
	}
}

// What stands there must be what is expected, and nobody else's tracer be at
// work.
func TestRewriteRefuses(t *testing.T) {
	r := startRewritten(t)
	r.unlessBusy(t, ErrUnsuited, proc.Change{Address: r.address(t, "value"), From: otherCode, To: codeOfValue}) // it is other code
	r.mustStand(t, "value", codeOfValue)
	if _, err := exec.LookPath("strace"); err != nil && os.Geteuid() != 0 { // root has it installed
		t.Skipf("%v (needs: apt-get install strace)", err)
	}
	tracer := exec.Command("strace", "-o", "/dev/null", "-p", fmt.Sprint(r.PID))
	if err := tracer.Start(); err != nil {
		t.Fatalf("%v (needs: apt-get install strace)", err)
	}
	defer func() { _ = tracer.Process.Kill(); _ = tracer.Wait() }()
	waitTraced(t, r.PID)
	if _, err := Rewrite(t.Context(), r.process, proc.Change{Address: r.address(t, "value"), From: codeOfValue, To: otherCode}); !errors.Is(err, ErrUnsuited) ||
		!strings.Contains(err.Error(), fmt.Sprintf("process %d traces it", tracer.Process.Pid)) {
		t.Errorf("under strace: %v", err)
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
