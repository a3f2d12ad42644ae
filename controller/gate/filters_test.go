// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestExecutedInASandbox: a program that is executed under a filter which its starter does
// not have may be killed for any system call of DMLib's. It ends by itself, and nobody has it.
func TestExecutedInASandbox(t *testing.T) {
	var calls []string
	for _, call := range []int{
		unix.SYS_MADVISE, unix.SYS_PRCTL, unix.SYS_GETTID, unix.SYS_GETPID, unix.SYS_CLOCK_GETTIME, unix.SYS_SOCKET,
		unix.SYS_CONNECT, unix.SYS_PPOLL, unix.SYS_MEMFD_CREATE, unix.SYS_FCNTL, unix.SYS_PIDFD_OPEN,
	} {
		calls = append(calls, fmt.Sprint(call))
	}
	filtered, program := mustBuild(t, "filtered"), mustBuild(t, "allocate")
	for name, past := range map[string]bool{"at the gate": false, "past the gate": true} {
		t.Run(name, func(t *testing.T) {
			g := mustServe(t, Options{geometry: small()})
			if err := g.SetEarly(past); err != nil {
				t.Fatal(err)
			}
			p := mustStart(t, g, filtered, strings.Join(calls, ","), program)
			mustAttach(t, g) // what executes the program
			patience.Until(t, "the program to be in its sandbox", func() bool { return InSandbox(p.PID) })
			p.finish()
			select {
			case a := <-g.attached:
				t.Errorf("%+v has come from the sandbox", released(t, a).Hello)
			default:
			}
		})
	}
}
