// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails if a test leaves a goroutine or a descriptor behind.
func TestMain(m *testing.M) {
	// Go's own: a poller and a probe for pidfds, both kept for good.
	if err := exec.Command("/bin/true").Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	before := descriptors()
	code := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if after := descriptors(); code == 0 && len(after) > len(before) {
		fmt.Fprintf(os.Stderr, "descriptors left behind: %d, then %d: %v\n", len(before), len(after), after)
		code = 1
	}
	os.Exit(code)
}

// descriptors lists what this process has open.
func descriptors() map[string]string {
	open := make(map[string]string)
	entries, _ := os.ReadDir("/proc/self/fd") // one of them is this directory
	for _, entry := range entries {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", entry.Name())); err == nil {
			open[entry.Name()] = to
		}
	}
	return open
}

// mustCompile builds a C program from testdata.
func mustCompile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), filepath.Base(source)+".bin")
	args := append([]string{"-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", binary, filepath.Join("testdata", source)}, flags...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", source, err, out)
	}
	return binary
}
