// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/debugregs"
	"github.com/attune-hpc/attune/internal/testing/confined"
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
		confined.MustRefuse(t, unix.SYS_PERF_EVENT_OPEN)
		n := newNode(Options{})
		defer n.close()
		found <- hardwareBreakpoint(context.Background(), n)
	}()
	if f := <-found; f.state != Unavailable || f.reason != notPermitted || f.remedy == "" {
		t.Errorf("%+v", f)
	}
}
