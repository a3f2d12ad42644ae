// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// initialPIDNamespace is PROC_PID_INIT_INO of the kernel: the inode number of
// the pid namespace that the machine booted with, fixed for ever.
const initialPIDNamespace = 0xEFFFFFFC

// SetPIDNamespace has programs that include pid_namespace.h speak the numbers of the
// caller's pid namespace. They need no translation in the initial one, which their
// variables mean where they are not set.
func SetPIDNamespace(spec *ebpf.CollectionSpec) error {
	var stat unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &stat); err != nil {
		return fmt.Errorf("own pid namespace: %w", err)
	}
	if stat.Ino == initialPIDNamespace {
		return nil
	}
	return errors.Join(
		spec.Variables["pid_namespace_device"].Set(stat.Dev),
		spec.Variables["pid_namespace_inode"].Set(stat.Ino),
	)
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
