// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// initialPIDNamespace is PROC_PID_INIT_INO of the kernel: the inode number of
// the pid namespace that the machine booted with, fixed for ever.
const initialPIDNamespace = 0xEFFFFFFC

// pidNamespace names the pid namespace whose numbers the programs speak.
type pidNamespace struct {
	device uint64
	inode  uint64
}

// ownPIDNamespace returns the caller's pid namespace. The zero value means
// the initial one, where the programs need no translation.
func ownPIDNamespace() (pidNamespace, error) {
	var stat unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &stat); err != nil {
		return pidNamespace{}, fmt.Errorf("own pid namespace: %w", err)
	}
	if stat.Ino == initialPIDNamespace {
		return pidNamespace{}, nil
	}
	return pidNamespace{device: stat.Dev, inode: stat.Ino}, nil
}
