//go:build privileged

// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullFileSystem: on a disk on which nothing is left, an archive says so, when it is
// opened as well, and has all that was in it once there is room again.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=400k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	path, filler := filepath.Join(dir, "archive.db"), filepath.Join(dir, "filler")
	add := func(tasks ...*Task) error {
		s, err := Open(t.Context(), path)
		if err != nil {
			return err
		}
		_, err = s.Add(t.Context(), tasks...)
		return errors.Join(err, s.Close())
	}
	if err := add(newTask("a", 1)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if err := add(newTask("a", 2)); !errors.Is(err, ErrFull) {
		t.Errorf("error %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	var many []*Task
	for n := range 2000 {
		many = append(many, newTask("a", 10+n))
	}
	if err := add(many...); !errors.Is(err, ErrFull) {
		t.Errorf("error %v", err)
	}
	if err := add(newTask("a", 3)); err != nil {
		t.Error(err)
	}
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := s.List(t.Context(), Filter{}); err != nil || len(all) != 2 {
		t.Errorf("%d tasks, %v; want the two that were added", len(all), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
