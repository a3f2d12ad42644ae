// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Link makes a directory in which the program is have a link to it for each
// tunlet, in place of whatever has that name. Links to the program for tunlets
// that there are no more are removed.
func Link(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, sdk.PackageProgram)); err != nil {
		return fmt.Errorf("copy %s there first: %w", sdk.PackageProgram, err)
	}
	var errs []error
	for _, name := range linked() {
		errs = append(errs, link(filepath.Join(dir, sdk.ProgramPrefix+name)))
	}
	return errors.Join(append(errs, unlink(dir))...)
}

// linked lists the names that there are links of.
func linked() []string { return append(Names(), sdk.Interpreter) }

// link makes one link, in one step.
func link(path string) error {
	if to, err := os.Readlink(path); err == nil && to == sdk.PackageProgram {
		return nil
	}
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Symlink(sdk.PackageProgram, next); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// unlink removes the links that lead nowhere any more.
func unlink(dir string) error {
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), sdk.ProgramPrefix)
		if !ok || slices.Contains(linked(), name) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if to, err := os.Readlink(path); err == nil && to == sdk.PackageProgram {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}
