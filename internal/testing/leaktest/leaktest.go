// SPDX-License-Identifier: Apache-2.0

// Package leaktest makes the tests of a package fail that leave something
// behind: goroutines, descriptors, or children. It belongs into TestMain, which
// sees what is left after the last test and its clean-up. It has no state.
package leaktest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// Main runs the tests and ends the process as they ended, or with 1 and the
// reasons on standard error if something was left.
func Main(m *testing.M) {
	// Go's own, kept for good: a poller and a probe for pidfds.
	if err := exec.Command("true").Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	before := Descriptors()
	code := m.Run()
	if err := errors.Join(goroutinesLeft(), descriptorsLeft(before, Descriptors()), ChildLeft()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// goroutinesLeft looks for half a second at a time, and for as long as on a crowded machine
// what ends may take to.
func goroutinesLeft() (err error) {
	for range 20 {
		if err = goleak.Find(); err == nil {
			break
		}
	}
	return err
}

// Descriptors lists what this process has open, by descriptor.
func Descriptors() map[string]string {
	open := make(map[string]string)
	entries, _ := os.ReadDir("/proc/self/fd") // one of them is this directory
	for _, entry := range entries {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", entry.Name())); err == nil {
			open[entry.Name()] = to
		}
	}
	return open
}

func descriptorsLeft(before, after map[string]string) error {
	if len(after) <= len(before) {
		return nil
	}
	maps.DeleteFunc(after, func(fd, to string) bool { return before[fd] == to })
	var left []string
	for fd, to := range after {
		left = append(left, fd+" "+to)
	}
	slices.Sort(left)
	return fmt.Errorf("descriptors left behind: %q", left)
}

// ChildLeft returns an error if this process has a child, which it reaps if it
// has ended.
func ChildLeft() error {
	pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
	switch {
	case errors.Is(err, unix.ECHILD):
		return nil
	case err == nil && pid == 0:
		return errors.New("a child that runs was left behind")
	case err == nil:
		return fmt.Errorf("child %d was left behind, not waited for", pid)
	}
	return fmt.Errorf("look for children: %w", err)
}
