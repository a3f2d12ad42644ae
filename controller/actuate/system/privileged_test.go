// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package system

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody runs f in a thread that has another user and no capability. The
// thread ends with it.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	const nobody = 65534
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody)
		if errno != 0 {
			done <- errno
			return
		}
		f()
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// Another user's process is refused before anything is tried.
func TestOwnerOnly(t *testing.T) {
	k := mustKeeper(t)
	asNobody(t, func() {
		target, err := Open(k.identity)
		if err != nil {
			t.Error(err)
			return
		}
		defer target.Close()
		_, err = Prepare(target, Request{Knob: "thread.policy", Value: "batch", On: Everywhere})
		if err == nil || !strings.Contains(err.Error(), "belongs to user 0; only its owner and root") {
			t.Errorf("%v", err)
		}
	})
}

// What could be done and not be taken back is refused, and done if that is
// wanted; with the privilege there is no question.
func TestWayBackNeedsPrivilege(t *testing.T) {
	tests := []struct{ knob, value, want string }{
		{"thread.nice", "5", "needs CAP_SYS_NICE or limit.nice=20"},
		{"thread.policy", "idle", "leaving idle"},
		{"limit.core", "0:0", "needs CAP_SYS_RESOURCE"},
	}
	for _, tt := range tests {
		t.Run(tt.knob, func(t *testing.T) {
			k := mustKeeper(t)
			// This thread keeps its user and loses what it can do.
			done := make(chan struct{})
			go func() {
				defer close(done)
				runtime.LockOSThread()
				header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
				var none [2]unix.CapUserData
				if err := unix.Capset(&header, &none[0]); err != nil {
					t.Error(err)
					return
				}
				request := Request{Knob: tt.knob, Value: tt.value, On: Everywhere}
				_, err := k.prepare(t, request)
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				request.WithoutUndo = true
				plan, err := k.prepare(t, request)
				if err != nil || plan.UndoError() == nil {
					t.Errorf("%v, undo %v", err, plan.UndoError())
				}
			}()
			<-done
		})
	}
}

func TestNice(t *testing.T) {
	k := mustKeeper(t)
	_, states := k.change(t, "thread.nice", "-5", Everywhere)
	if got := strings.Join(k.values(t, "thread.nice"), " "); got != "-5 -5 -5 -5" {
		t.Errorf("%s", got)
	}
	k.restore(t, states)
	if got := strings.Join(k.values(t, "thread.nice"), " "); got != "0 0 0 0" {
		t.Errorf("%s", got)
	}
}

// A realtime thread gets policy and nice value back.
func TestRealtime(t *testing.T) {
	k := mustKeeper(t)
	k.change(t, "thread.nice", "3", Everywhere)
	_, states := k.change(t, "thread.policy", "rr:1", Everywhere)
	if got := strings.Join(k.values(t, "thread.policy"), " "); got != "rr:1 rr:1 rr:1 rr:1" {
		t.Errorf("%s", got)
	}
	k.restore(t, states)
	if got := strings.Join(k.values(t, "thread.policy"), " ") + strings.Join(k.values(t, "thread.nice"), " "); got != "other other other other3 3 3 3" {
		t.Errorf("%s", got)
	}
}

// Huge pages are behind a mapping afterwards.
func TestCollapse(t *testing.T) {
	k := mustKeeper(t)
	from, err := strconv.ParseUint(k.Ask(t, "memory"), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	plan, states := k.change(t, "memory.collapse", fmt.Sprintf("%x-%x", from, from+8<<20), Everywhere)
	var before, after int
	if _, err := fmt.Sscanf(plan.Old()+plan.New(), "AnonHugePages %d kBAnonHugePages %d kB", &before, &after); err != nil {
		t.Fatalf("%s → %s", plan.Old(), plan.New())
	}
	if after < before+3*2048 {
		t.Errorf("huge pages %d → %d kB", before, after)
	}
	if err := Restore(k.identity, states); err == nil {
		t.Error("advice was taken back")
	}
}

// cgroupWith makes a cgroup of the hierarchy that has cpuset, version 1 or 2,
// and moves a process there.
func cgroupWith(t *testing.T, pid int) string {
	t.Helper()
	var st unix.Stat_t
	base := "/sys/fs/cgroup/cpuset"
	if unix.Stat(base, &st) != nil {
		base = "/sys/fs/cgroup"
		if err := os.WriteFile(base+"/cgroup.subtree_control", []byte("+cpuset"), 0); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(base, fmt.Sprintf("attune-test-%d", pid))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		home := []byte(strconv.Itoa(pid))
		_ = os.WriteFile(base+"/cgroup.procs", home, 0) // it may have ended
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		all, err := os.ReadFile(filepath.Join(base, strings.Replace(file, "cpuset.", "cpuset.effective_", 1)))
		if err == nil { // version 1 begins empty
			err = os.WriteFile(filepath.Join(dir, file), all, 0)
		}
		if err != nil && base != "/sys/fs/cgroup" {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A cgroup of the process alone is changed and restored, even when the process
// is gone; one with others in it is refused.
func TestCgroup(t *testing.T) {
	k := mustKeeper(t)
	if _, err := k.prepare(t, Request{Knob: "cgroup.cpuset.cpus", Value: "0", On: Everywhere}); err == nil {
		t.Error("the root cgroup, or a shared one, was accepted")
	}
	dir := cgroupWith(t, k.PID)
	read := func() string {
		data, err := os.ReadFile(dir + "/cpuset.cpus")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(data))
	}
	before := read()
	_, states := k.change(t, "cgroup.cpuset.cpus", "0", Everywhere)
	if got := read(); got != "0" {
		t.Errorf("changed to %q", got)
	}
	gone := k.identity
	gone.StartTicks--
	if err := Restore(gone, states); err != nil || read() != before {
		t.Errorf("%v: restored to %q, was %q", err, read(), before)
	}
	other := mustKeeper(t)
	if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(other.PID)), 0); err != nil {
		t.Fatal(err)
	}
	_, err := k.prepare(t, Request{Knob: "cgroup.cpuset.cpus", Value: "0", On: Everywhere})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("also holds process %d, outside the job", other.PID)) {
		t.Errorf("%v", err)
	}
	inJob := func(pid int) bool { return pid == other.PID }
	if _, err := k.prepare(t, Request{Knob: "cgroup.cpuset.cpus", Value: "0", On: Everywhere, InJob: inJob}); err != nil {
		t.Error(err)
	}
	_ = os.WriteFile(filepath.Dir(dir)+"/cgroup.procs", []byte(strconv.Itoa(other.PID)), 0) // before the cgroup goes
}
