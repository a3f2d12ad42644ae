// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// initialPIDNamespace is PROC_PID_INIT_INO of the kernel: the inode number of
// the pid namespace that the machine booted with, fixed for ever.
const initialPIDNamespace = 0xEFFFFFFC

// PIDNamespace names the pid namespace whose numbers the programs speak.
type PIDNamespace struct {
	Device uint64
	Inode  uint64
}

// OwnPIDNamespace returns the caller's pid namespace. The zero value means
// the initial one, where the programs need no translation.
func OwnPIDNamespace() (PIDNamespace, error) {
	var stat unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &stat); err != nil {
		return PIDNamespace{}, fmt.Errorf("own pid namespace: %w", err)
	}
	if stat.Ino == initialPIDNamespace {
		return PIDNamespace{}, nil
	}
	return PIDNamespace{Device: stat.Dev, Inode: stat.Ino}, nil
}

// OwnBootOffset returns what /proc shows us of start times more than the
// kernel has, in nanoseconds: that of our time namespace.
func OwnBootOffset() (int64, error) {
	text, err := os.ReadFile("/proc/self/timens_offsets")
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // built without time namespaces
	}
	if err != nil {
		return 0, fmt.Errorf("own time namespace: %w", err)
	}
	return ParseBootOffset(string(text))
}

// ParseBootOffset reads lines "CLOCK SECONDS NANOSECONDS".
func ParseBootOffset(text string) (int64, error) {
	for line := range strings.Lines(text) {
		var clock string
		var seconds, nanos int64
		if _, err := fmt.Sscan(line, &clock, &seconds, &nanos); err != nil {
			return 0, fmt.Errorf("offsets of time namespace: %w", err)
		}
		if clock == "boottime" {
			return seconds*1e9 + nanos, nil
		}
	}
	return 0, nil
}
