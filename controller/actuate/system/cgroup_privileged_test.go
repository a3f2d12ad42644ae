// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package system

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// cgroupRoot is where a controller lies on this node, and in which version.
func cgroupRoot(t *testing.T, controller string) (root string, version int) {
	t.Helper()
	old := filepath.Join("/sys/fs/cgroup", nameIn(1, controller))
	if _, err := os.Stat(filepath.Join(old, "cgroup.procs")); err == nil {
		return old, 1
	}
	return "/sys/fs/cgroup", 2
}

// cgroupWith makes a cgroup that a controller governs, version 1 or 2, and
// moves a process there.
func cgroupWith(t *testing.T, controller string, pid int) string {
	t.Helper()
	root, version := cgroupRoot(t, controller)
	if version == 2 {
		files.Write(t, filepath.Join(root, "cgroup.subtree_control"), "+"+nameIn(2, controller), 0)
	}
	dir := filepath.Join(root, fmt.Sprintf("attune-test-%d", pid))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0) // it may have ended
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if controller == "cpuset" && version == 1 { // begins empty, and takes no process so
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			files.Write(t, filepath.Join(dir, file), mustRead(t, filepath.Join(root, strings.Replace(file, ".", ".effective_", 1))), 0)
		}
	}
	files.Write(t, filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid), 0)
	return dir
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	data := files.Read(t, path)
	return strings.TrimSpace(string(data))
}

// Every knob of the version that this node has is changed and restored; every
// other is refused with the names of those that there are.
func TestCgroupKnobs(t *testing.T) {
	values := map[string]string{
		"cpu.weight": "200", "cpu.max": "50000 100000", "io.weight": "300",
		"memory.high": "1073741824", "memory.low": "1048576", "memory.max": "2147483648",
		"cpu.shares": "512", "cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "50000",
		"memory.soft_limit_in_bytes": "1073741824", "memory.limit_in_bytes": "2147483648",
		"memory.swappiness": "10", "blkio.weight": "300", "cpuset.cpus": "0", "pids.max": "1000",
	}
	for _, file := range cgroupFiles() {
		t.Run(file.name, func(t *testing.T) {
			k := mustKeeper(t)
			request := Request{Knob: "cgroup." + file.name, Value: values[file.name], On: Everywhere}
			if _, version := cgroupRoot(t, file.controller); file.version != 0 && file.version != version {
				_, err := k.prepare(t, request)
				want := fmt.Sprintf("controller %s is in cgroup v%d on this node; there are cgroup.", nameIn(version, file.controller), version)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
				return
			}
			path := filepath.Join(cgroupWith(t, file.controller, k.PID), file.name)
			if _, err := os.Stat(path); err != nil { // not every kernel weighs I/O
				_, err := k.prepare(t, request)
				if err == nil || !strings.Contains(err.Error(), "has no "+file.name) {
					t.Errorf("%v, want that there is no %s", err, file.name)
				}
				return
			}
			before := mustRead(t, path)
			_, states := k.change(t, request.Knob, request.Value, Everywhere)
			if got := mustRead(t, path); got != file.prefix+request.Value {
				t.Errorf("changed from %q to %q, want %q", before, got, request.Value)
			}
			k.restore(t, states)
			if got := mustRead(t, path); got != before && (file.same == nil || !file.same(before, got)) {
				t.Errorf("restored to %q, was %q", got, before)
			}
		})
	}
}

// The one hierarchy of version 2, where there is no other, has these.
func TestUnifiedHierarchyIsExercised(t *testing.T) {
	offered, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	if os.Getenv("ATTUNE_VM") == "" && err != nil {
		return // version 1 lies there; the virtual machines have version 2
	}
	for _, controller := range []string{"cpu", "cpuset", "io", "memory", "pids"} {
		if !slices.Contains(strings.Fields(string(offered)), controller) {
			t.Errorf("no %s among %q (%v)", controller, offered, err)
		}
	}
}

// cpusAllowed is the list in /proc/PID/status.
func cpusAllowed(status string) string {
	_, list, _ := strings.Cut(status, "Cpus_allowed_list:")
	list, _, _ = strings.Cut(list, "\n")
	return strings.TrimSpace(list)
}

// A cgroup of the process alone is changed and restored, even when the process
// is gone; one with others in it is refused.
func TestCgroup(t *testing.T) {
	k := mustKeeper(t)
	if _, err := k.prepare(t, Request{Knob: "cgroup.cpuset.cpus", Value: "0", On: Everywhere}); err == nil {
		t.Error("the root cgroup, or a shared one, was accepted")
	}
	dir := cgroupWith(t, "cpuset", k.PID)
	read := func() string { return mustRead(t, dir+"/cpuset.cpus") }
	before, effective := read(), mustRead(t, "/proc/"+strconv.Itoa(k.PID)+"/status")
	_, states := k.change(t, "cgroup.cpuset.cpus", "0", Everywhere)
	if got := read(); got != "0" {
		t.Errorf("changed to %q", got)
	}
	gone := k.identity
	gone.StartTicks--
	if err := takeBack(gone, states); err != nil || read() != before && !sameCPUs(before, read()) {
		t.Errorf("%v: restored to %q, was %q", err, read(), before)
	}
	if now := mustRead(t, "/proc/"+strconv.Itoa(k.PID)+"/status"); cpusAllowed(now) != cpusAllowed(effective) {
		t.Errorf("the process may use CPUs %q, might use %q", cpusAllowed(now), cpusAllowed(effective))
	}
	other := mustKeeper(t)
	files.Write(t, dir+"/cgroup.procs", strconv.Itoa(other.PID), 0)
	_, err := k.prepare(t, Request{Knob: "cgroup.cpuset.cpus", Value: "0", On: Everywhere})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("also holds process %d, outside the job", other.PID)) {
		t.Errorf("%v", err)
	}
	inJob := func(pid int) bool { return pid == other.PID }
	if _, err := k.prepare(t, Request{Knob: "cgroup.cpuset.cpus", Value: "0", On: Everywhere, Options: Options{InJob: inJob}}); err != nil {
		t.Error(err)
	}
	_ = os.WriteFile(filepath.Dir(dir)+"/cgroup.procs", []byte(strconv.Itoa(other.PID)), 0) // before the cgroup goes
}

// A limit below what is in use would hurt at once, also where it is the one that was there
// before.
func TestCgroupLimitBelowUse(t *testing.T) {
	memory := "memory.max"
	if _, version := cgroupRoot(t, "memory"); version == 1 {
		memory = "memory.limit_in_bytes"
	}
	tests := []struct{ controller, file, value, before, after, use, want string }{
		{"pids", "pids.max", "1", "6", "1000", "spawn 9", "no thread could start"},
		{"memory", memory, "4096", "4M", "1G", "memory", "processes would be killed"},
	}
	for _, tt := range tests {
		t.Run(tt.controller, func(t *testing.T) {
			k := mustKeeper(t)
			limit := filepath.Join(cgroupWith(t, tt.controller, k.PID), tt.file)
			files.Write(t, limit, tt.before, 0)
			_, states := k.change(t, "cgroup."+tt.file, tt.after, Everywhere)
			k.Ask(t, tt.use) // charged here
			if err := takeBack(k.identity, states); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("restored with %v, want %q", err, tt.want)
			}
			if now := mustRead(t, limit); now != states[0].New {
				t.Errorf("it is %s, want %s", now, states[0].New)
			}
			_, err := k.prepare(t, Request{Knob: "cgroup." + tt.file, Value: tt.value, On: Everywhere})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// The threads of a real cpuset count as bound once they are.
func TestBoundThreadInRealCpuset(t *testing.T) {
	if runtime.NumCPU() == 1 {
		t.Skip("a thread cannot be bound to some of the CPUs")
	}
	k := mustKeeper(t)
	dir := cgroupWith(t, "cpuset", k.PID)
	if err := mayRebindOn(pinsKept-1, dir); err != nil {
		t.Error(err)
	}
	k.change(t, "thread.affinity", "0", k.PID)
	if err := mayRebindOn(pinsKept-1, dir); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("thread %d is bound", k.PID)) {
		t.Errorf("%v", err)
	}
}
