// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// KnowledgeDir returns a directory for what runs learn, made if need be. What the
// environment names comes first, for root too: it need not be where journals are,
// which concern the whole machine.
func (u User) KnowledgeDir() (string, error) {
	if base := u.Env("XDG_STATE_HOME"); filepath.IsAbs(base) {
		dir := filepath.Join(base, "attune")
		if err := u.own(dir, 0o700); err != nil {
			return "", err
		}
		return dir, nil
	}
	return u.LastingStateDir()
}

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
