// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestClaimEndsWhileAChildHasIt: a child has each descriptor from fork to exec.
func TestClaimEndsWhileAChildHasIt(t *testing.T) {
	release, err := claim(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claim(os.Getpid()); !errors.Is(err, ErrHeld) {
		t.Errorf("second claim: %v, want %v", err, ErrHeld)
	}
	child, err := unix.Dup(descriptorOf(t, fmt.Sprintf("/proc/%d/environ", os.Getpid())))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	release()
	again, err := claim(os.Getpid())
	if err != nil {
		t.Fatalf("claim after the first has ended: %v", err)
	}
	again()
}

// descriptorOf finds this process' descriptor of a file.
func descriptorOf(t *testing.T, path string) int {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == path {
			fd, err := strconv.Atoi(filepath.Base(link))
			if err != nil {
				t.Fatal(err)
			}
			return fd
		}
	}
	t.Fatalf("no descriptor of %s", path)
	return -1
}
