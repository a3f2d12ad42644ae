// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"os/exec"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
)

// TestBeside: an account beside other work leaves the children of this process alone, and
// does not make it the parent of what loses its own, nor looks for who might; the sums of a tree that is waited for
// are true.
func TestBeside(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); err != nil { // other tests have set it
		t.Fatal(err)
	}
	options := Options{Beside: true, WithoutKernel: true}
	own := exec.CommandContext(t.Context(), "sh", "-c", "exit 7")
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	r, err := newReaped(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.reaper.strangers.known) > 0 {
		t.Errorf("there is a look at what is none of the command's: %v", r.reaper.strangers.known)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
	loader := mustLoad(t, options)
	a, _, want := mustGrow(t, options, 1, 60, "waited")
	if a.Processes.Total == nil {
		t.Skip("no process connector here: ", a.Missing)
	}
	checkBytes(t, a, loader, want)
	var reaper int32
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&reaper)), 0, 0, 0); err != nil || reaper != 0 {
		t.Errorf("this process is the parent of what loses its own: %v, %v", reaper, err)
	}
	if err := own.Wait(); own.ProcessState == nil || own.ProcessState.ExitCode() != 7 {
		t.Errorf("somebody else has waited for a child: %v", err)
	}
	if slices.ContainsFunc(a.Tree, func(p account.Process) bool { return p.PID == own.Process.Pid }) {
		t.Error("a child of this process is in the account")
	}
	if a.Memory.Cgroup != nil {
		t.Errorf("in a control group of its own: %v", *a.Memory.Cgroup)
	}
}

// TestLeaveOut: a long list keeps what took most, and the mark of the rest.
func TestLeaveOut(t *testing.T) {
	left := leftOut{wanted: true}
	var list []uint64
	for n := range uint64(3 * maxTree) {
		list = leaveOut(&left, append(list, n+1), func(a, b uint64) int { return int(b) - int(a) }, func(n uint64) uint64 { return n })
	}
	if !slices.Contains(list, 3*maxTree) || slices.Contains(list, 1) || left.count+uint64(len(list)) != 3*maxTree || left.mark == 0 || left.unmarked {
		t.Errorf("%d are kept, left out %+v", len(list), left)
	}
	if all := leaveOut(&leftOut{}, make([]int, 3*maxTree), func(a, b int) int { return 0 }, func(int) uint64 { return 0 }); len(all) != 3*maxTree {
		t.Errorf("%d of a list that is wanted whole", len(all))
	}
}
