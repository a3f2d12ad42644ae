// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package inject

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestStrangersKeepNobodyOut: another user has all files of the process locked that they can
// open, which are many.
func TestStrangersKeepNobodyOut(t *testing.T) {
	const nobody = 65534
	b := newBench(t)
	target := targets.StartProgram(t, "plain")
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/*", target.PID))
	if err != nil {
		t.Fatal(err)
	}
	var locked []string
	for _, path := range paths {
		file, err := asuser.Open(nobody, path)
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = file.Close() })
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Fatal(path, err)
		}
		locked = append(locked, filepath.Base(path))
	}
	if !slices.Contains(locked, "stat") {
		t.Fatalf("locked are %v", locked)
	}
	result, err := Inject(t.Context(), mustOpen(t, target.PID), b.options)
	if err != nil {
		t.Fatalf("beside locks of %v: %v", locked, err)
	}
	free(t, result)
	if _, err := asuser.Open(nobody, fmt.Sprintf("/proc/%d/environ", target.PID)); !errors.Is(err, unix.EACCES) {
		t.Errorf("what is locked: %v", err)
	}
}
