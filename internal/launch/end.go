// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/exitcode"
)

// End makes this process end as the program did: it returns the exit code for
// os.Exit, or does not return because it died by the same signal.
func (e Exit) End() int {
	if e.Signal == 0 {
		return e.Code
	}
	return DieBy(e.Signal)
}

// DieBy kills this process by sig, without a core dump of its own, which would
// overwrite the program's. It returns 128 plus the signal's number where the
// kernel does not let it die (process 1 of a container).
func DieBy(sig syscall.Signal) int {
	// Each is enough where the other is not: a limit of 0 does not stop a
	// core_pattern that is a pipe, an undumpable process does.
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	_ = raise(sig)
	return exitcode.SignalBase + int(sig)
}
