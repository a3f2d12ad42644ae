// SPDX-License-Identifier: Apache-2.0

package capability

import "context"

// Names of mechanisms. They are stable: tools read them.
const (
	preload   = "preload"
	got       = "got"
	uprobes   = "uprobe"
	execEvent = "exec_events"
	ptrace    = "ptrace"
	vmWrite   = "process_vm_writev"
)

// probe finds out about one mechanism. fast is nil where that takes more than
// a few system calls.
type probe struct {
	name       string
	fast, full func(context.Context, *node) finding
}

// quick is a probe whose full form is fast enough.
func quick(name string, look func(*node) finding) probe {
	both := func(_ context.Context, n *node) finding { return look(n) }
	return probe{name, both, both}
}

// catalogue lists all probes in the order of the report: ways into a process
// from the cheapest on, then what they rest on, then privileges.
func catalogue() []probe {
	probes := []probe{
		{preload, preloadLikely, preloadTried},
		quick(got, rebindGOT),
		quick("entry_patch", entryPatch),
		{uprobes, uprobeLikely, uprobeTried},
		{"uprobe_multi", nil, uprobeMulti},
		quick("btf", kernelTypes),
		{"bpf_ring_buffer", nil, ringBuffer},
		{execEvent, execEventsLikely, execEventsTried},
		{"process_connector", nil, processConnector},
		quick("perf_software", perfSoftware),
		quick("perf_hardware", perfHardware),
		{ptrace, ptraceLikely, ptraceTried},
		{"process_vm_readv", nil, vmReadTried},
		{vmWrite, vmWriteLikely, vmWriteTried},
		quick("pidfd", pidfd),
		{"pidfd_getfd", nil, pidfdGetfd},
		{"hardware_breakpoint", nil, hardwareBreakpoint},
		{"process_madvise", nil, processMadvise},
		quick("memfd_sealing", memfdSealing),
		quick("wipe_on_fork", wipeOnFork),
		quick("cgroup", controlGroups),
		quick("lockdown", lockdown),
		quick("scheduler_statistics", schedulerStatistics),
		quick("clock", clockSource),
	}
	return append(probes, heldProbes()...)
}
