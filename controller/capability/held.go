// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"strings"

	"golang.org/x/sys/unix"
)

// heldProbes: one entry per capability that some mechanism rests on.
func heldProbes() []probe {
	uses := []struct {
		capability uintptr
		name, use  string
	}{
		{unix.CAP_BPF, "CAP_BPF", "loading BPF programs"},
		{unix.CAP_PERFMON, "CAP_PERFMON", "attaching them, and counters of other users' processes"},
		{unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "reading and changing other users' processes"},
		{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "what the narrower ones do not cover on older kernels"},
		{unix.CAP_SYS_NICE, "CAP_SYS_NICE", "raising priorities, memory advice from outside"},
		{unix.CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE", "raising hard limits"},
		{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN", "socket options beyond the system's limits"},
		{unix.CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", "opening replaced files of a process by their mapping"},
		{unix.CAP_LEASE, "CAP_LEASE", "letting go of other users' programs before somebody overwrites them"},
		{unix.CAP_KILL, "CAP_KILL", "signals to other users' processes"},
	}
	var probes []probe
	for _, use := range uses {
		both := func(_ context.Context, n *node) finding {
			if n.held.Has(use.capability) {
				return available(use.use)
			}
			return unavailable("not held; serves "+use.use, "run as root, or grant "+use.name)
		}
		probes = append(probes, probe{strings.ToLower(use.name), both, both})
	}
	return probes
}
