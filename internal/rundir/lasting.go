// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// LastingStateDir returns a directory for journals that must outlive the
// command, made if need be. The error names every place that was tried.
func (u User) LastingStateDir() (string, error) {
	var errs []error
	for _, dir := range u.states() {
		err := u.own(dir, 0o700)
		if err == nil {
			err = unix.Access(dir, unix.W_OK)
		}
		if err == nil {
			return dir, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", dir, err))
	}
	return "", fmt.Errorf("no directory for the journal that would outlive the command, set XDG_STATE_HOME: %w", errors.Join(errs...))
}
