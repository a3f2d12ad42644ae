// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/debugregs"
)

// TestBreakpointsOfContainer: where a filter refuses perf_event_open(2), as those of
// containers do, no breakpoint can be set.
func TestBreakpointsOfContainer(t *testing.T) {
	if debugregs.Dead() { // asked before the filter, for all tests of this process
		t.Skip("the debug registers of this machine stop nobody")
	}
	found := make(chan finding)
	go func() {
		runtime.LockOSThread() // the thread ends with its filter
		mustRefusePerf(t)
		n := newNode(Options{})
		defer n.close()
		found <- hardwareBreakpoint(context.Background(), n)
	}()
	if f := <-found; f.state != Unavailable || f.reason != notPermitted || f.remedy == "" {
		t.Errorf("%+v", f)
	}
}

// mustRefusePerf has perf_event_open(2) refused to this thread.
func mustRefusePerf(t *testing.T) {
	t.Helper()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_PERF_EVENT_OPEN},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Error(err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		t.Error(err)
	}
}
