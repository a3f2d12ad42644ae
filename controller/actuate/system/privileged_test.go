// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package system

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/asuser"
)

// Another user's process is refused before anything is tried.
func TestOwnerOnly(t *testing.T) {
	k := mustKeeper(t)
	const nobody = 65534
	if err := asuser.Do(nobody, func() {
		target, err := Open(k.identity)
		if err != nil {
			t.Error(err)
			return
		}
		defer target.Close()
		_, err = prepare(target, Request{Knob: "thread.policy", Value: "batch", On: Everywhere})
		if err == nil || !strings.Contains(err.Error(), "belongs to user 0; only its owner and root") {
			t.Errorf("%v", err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// What could be done and not be taken back is refused, and done if that is
// wanted; with the privilege there is no question.
func TestWayBackNeedsPrivilege(t *testing.T) {
	tests := []struct {
		knob, before string // what root has set; empty: nothing
		value, want  string
	}{
		{"thread.nice", "", "5", "needs CAP_SYS_NICE or limit.nice=20"},
		{"thread.policy", "", "idle", "leaving idle"},
		{"thread.policy", "fifo:5", "other", "going back to fifo:5 needs CAP_SYS_NICE or limit.rtprio=5"},
		{"thread.ionice", "realtime:3", "best-effort:4", "going back to realtime:3 needs CAP_SYS_NICE"},
		{"limit.core", "", "0:0", "needs CAP_SYS_RESOURCE"},
	}
	for _, tt := range tests {
		t.Run(tt.knob+"="+tt.value, func(t *testing.T) {
			k := mustKeeper(t)
			if tt.before != "" {
				k.change(t, tt.knob, tt.before, Everywhere)
			}
			withoutCapabilities(t, func() {
				request := Request{Knob: tt.knob, Value: tt.value, On: Everywhere}
				_, err := k.prepare(t, request)
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				request.WithoutUndo = true
				plan, err := k.prepare(t, request)
				if err != nil || plan.undo == nil {
					t.Errorf("%v, undo %v", err, plan.undo)
				}
			})
		})
	}
}

// withoutCapabilities calls a function in a thread that keeps its user and loses what it can do.
func withoutCapabilities(t *testing.T, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		err := unix.Capset(&header, &none[0])
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// What may not be looked at is not gone: an undo that was not permitted says so.
func TestUndoThatIsNotPermitted(t *testing.T) {
	k := mustKeeper(t)
	_, states := k.change(t, "pipe.size", "128K", Everywhere)
	withoutCapabilities(t, func() {
		if err := takeBack(k.identity, states); !errors.Is(err, os.ErrPermission) {
			t.Errorf("restored with %v", err)
		}
	})
	k.restore(t, states)
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
	if version, err := features.LinuxVersionCode(); err != nil || version < 6<<16|1<<8 {
		t.Skipf("the advice is there from Linux 6.1 on (%d, %v)", version, err)
	}
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
	if err := takeBack(k.identity, states); err == nil {
		t.Error("advice was taken back")
	}
}

// How long a realtime thread has run is not to be seen, so that its limit is lowered only
// when it is none any more.
func TestLimitOfRealtimeStays(t *testing.T) {
	k := mustKeeper(t)
	limit := unix.Rlimit{Cur: 1000000, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(k.PID, unix.RLIMIT_RTTIME, &limit, nil); err != nil {
		t.Fatal(err)
	}
	_, states := k.change(t, "limit.rttime", "1G", Everywhere)
	_, policy := k.change(t, "thread.policy", "rr:1", Everywhere)
	if err := takeBack(k.identity, states); err == nil || !strings.Contains(err.Error(), "realtime policy") {
		t.Errorf("restored with %v", err)
	}
	k.restore(t, policy)
	k.restore(t, states)
}

// TestPassedLimitsOfRoot: a limit that does not bind root's processes is put back where they have
// passed it.
func TestPassedLimitsOfRoot(t *testing.T) {
	for _, test := range []struct {
		knob      string
		resource  int
		low, high uint64
		passed    string
	}{
		{"limit.memlock", unix.RLIMIT_MEMLOCK, 4096, 1 << 16, "lock 32768"},
		{"limit.nproc", unix.RLIMIT_NPROC, 3, 1 << 12, "fds"}, // it has 4 threads
	} {
		t.Run(test.knob, func(t *testing.T) {
			k := mustKeeper(t)
			err := passed(t, k, test.knob, test.resource, test.low, test.high, func(t *testing.T, k *keeper) { k.Ask(t, test.passed) })
			if got := softLimit(t, k, test.resource); err != nil || got != test.low {
				t.Errorf("the limit is %d, %v", got, err)
			}
		})
	}
}
