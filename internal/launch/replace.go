// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os/signal"
	"syscall"

	"github.com/attune-hpc/attune/internal/inherit"
)

// Replace executes the program in place of this process, as Start would start
// it. It returns only with an error of Start's kinds. Nothing may be caught.
func Replace(args, env []string, state inherit.State) error {
	for _, sig := range state.Ignored.List() {
		if canIgnore(sig) {
			signal.Ignore(sig)
		}
	}
	for fd := range 3 {
		if state.FDClosed(fd) {
			_ = syscall.Close(fd)
		}
	}
	err := withMask(state.Blocked, func() error {
		return search(args, env, func(path string, args []string) error {
			return syscall.Exec(path, args, env)
		})
	})
	return startError(args[0], err)
}
