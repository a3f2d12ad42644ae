// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"fmt"
	"strconv"
	"strings"
)

// Descriptor is what the kernel tells of a descriptor (proc_pid_fdinfo(5)).
type Descriptor struct {
	// Flags are those of open(2).
	Flags uint64
	// Mount is the id of the mount that its file lies on.
	Mount uint64
	// Inode is that of its file; 0: not told, before Linux 5.14.
	Inode uint64
}

// maxDescriptorBytes is more than the first lines have, which all descriptors share.
const maxDescriptorBytes = 4096

// ReadDescriptor reads what /proc/PID/fdinfo tells. [ErrGone] if it is closed.
func ReadDescriptor(pid, fd int) (Descriptor, error) {
	info, err := ReadFile(pid, "fdinfo/"+strconv.Itoa(fd), maxDescriptorBytes)
	if err != nil {
		return Descriptor{}, err
	}
	return parseDescriptor(string(info))
}

func parseDescriptor(info string) (d Descriptor, err error) {
	told := false
	for line := range strings.Lines(info) {
		name, text, _ := strings.Cut(line, ":")
		switch text = strings.TrimSpace(text); name {
		case "flags":
			told = true
			d.Flags, err = strconv.ParseUint(text, 8, 64)
		case "mnt_id":
			d.Mount, err = strconv.ParseUint(text, 10, 64)
		case "ino":
			d.Inode, err = strconv.ParseUint(text, 10, 64)
		}
		if err != nil {
			return d, fmt.Errorf("%w: fdinfo with %q", ErrMalformed, line)
		}
	}
	if !told {
		return d, fmt.Errorf("%w: fdinfo without flags", ErrMalformed)
	}
	return d, nil
}
