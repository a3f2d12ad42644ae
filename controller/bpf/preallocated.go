// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// allocatesSince is the first version of Linux whose tracing programs may use tables that
// allocate as they fill. Earlier ones load them with a warning in the kernel's log, which a
// machine with panic_on_warn does not survive.
const allocatesSince = 6<<16 | 1<<8

// Preallocate has a kernel of that LINUX_VERSION_CODE allocate the tables of tracing programs
// whole, if it has to. It goes before loading.
func Preallocate(spec *ebpf.CollectionSpec, kernel uint32) {
	if kernel >= allocatesSince {
		return
	}
	for _, m := range spec.Maps {
		if m.Type == ebpf.Hash || m.Type == ebpf.PerCPUHash {
			m.Flags &^= unix.BPF_F_NO_PREALLOC
		}
	}
}
