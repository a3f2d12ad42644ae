// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// TestMain fails if a test leaves a goroutine, a child or a descriptor behind.
func TestMain(m *testing.M) {
	// Go's own: a poller and a probe for pidfds, both kept for good.
	if err := exec.Command("true").Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	before := descriptors()
	code := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if after := descriptors(); after > before {
		fmt.Fprintf(os.Stderr, "descriptors: %d, then %d\n", before, after)
		code = 1
	}
	if err := children(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func descriptors() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// children returns an error if this process has any.
func children() error {
	pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
	switch {
	case errors.Is(err, unix.ECHILD):
		return nil
	case err == nil:
		return fmt.Errorf("child %d left behind", pid)
	}
	return fmt.Errorf("look for children: %w", err)
}
