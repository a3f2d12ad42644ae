// SPDX-License-Identifier: Apache-2.0

package series

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// signals is read-only.
var signals = Table{
	ID: 5, Name: "signals", Of: attunev1.SubjectKind_SUBJECT_KIND_PROCESS,
	Series: []Series{
		{
			ID: 1, Name: "cpu_user", Unit: Nanoseconds, Kind: KindCounter, Exactness: Sampled,
			Help: "CPU time in user mode, in steps of a clock tick (10 ms)", Source: "`/proc/PID/stat` 14",
		},
		{
			ID: 2, Name: "cpu_system", Unit: Nanoseconds, Kind: KindCounter, Exactness: Sampled,
			Help: "CPU time in the kernel, in steps of a clock tick", Source: "`/proc/PID/stat` 15",
		},
		{
			ID: 3, Name: "run_time", Unit: Nanoseconds, Kind: KindCounter,
			Help: "time on a CPU, all threads", Source: "`/proc/PID/task/*/schedstat` 1",
		},
		{
			ID: 4, Name: "runqueue_wait", Unit: Nanoseconds, Kind: KindCounter,
			Help: "time runnable and waiting for a CPU, all threads", Source: "`/proc/PID/task/*/schedstat` 2",
		},
		{
			ID: 5, Name: "minor_faults", Unit: "faults", Kind: KindCounter,
			Help: "page faults served without waiting for a disk", Source: "`/proc/PID/stat` 10",
		},
		{
			ID: 6, Name: "major_faults", Unit: "faults", Kind: KindCounter,
			Help: "page faults that had to wait for a disk", Source: "`/proc/PID/stat` 12",
		},
		{
			ID: 7, Name: "resident_bytes", Unit: "bytes", Kind: KindGauge,
			Help: "resident memory", Source: "`/proc/PID/stat` 24",
		},
		{
			ID: 8, Name: "voluntary_switches", Unit: "switches", Kind: KindCounter, Exactness: Sampled,
			Help: "context switches of threads that had to wait", Source: "`/proc/PID/task/*/status` `voluntary_ctxt_switches`",
		},
		{
			ID: 9, Name: "involuntary_switches", Unit: "switches", Kind: KindCounter, Exactness: Sampled,
			Help:   "context switches of threads that were preempted or yielded",
			Source: "`/proc/PID/task/*/status` `nonvoluntary_ctxt_switches`",
		},
		{
			ID: 10, Name: "threads", Unit: "threads", Kind: KindGauge,
			Help: "number of threads", Source: "`/proc/PID/stat` 20",
		},
		{
			ID: 11, Name: "runnable_threads", Unit: "threads", Kind: KindGauge,
			Help: "number of threads in state R", Source: "`/proc/PID/task/*/stat` 3",
		},
		{
			ID: 12, Name: "cpus_allowed", Unit: "CPUs", Kind: KindGauge, Overlaps: true,
			Help: "number of CPUs that the process may run on, all threads together", Source: "`/proc/PID/task/*/status` `Cpus_allowed`",
		},
		{
			ID: 13, Name: "anonymous_bytes", Unit: "bytes", Kind: KindGauge,
			Help: "resident memory without a file: heap, stacks, mappings without a file", Source: "`/proc/PID/status` `RssAnon`",
		},
		{
			ID: 14, Name: "read_calls", Unit: "calls", Kind: KindCounter,
			Help: "system calls of the read(2) family", Source: "`/proc/PID/io` `syscr`",
		},
		{
			ID: 15, Name: "write_calls", Unit: "calls", Kind: KindCounter,
			Help: "system calls of the write(2) family", Source: "`/proc/PID/io` `syscw`",
		},
		{
			ID: 16, Name: "read_bytes", Unit: "bytes", Kind: KindCounter,
			Help: "bytes that calls of the read(2) family read", Source: "`/proc/PID/io` `rchar`",
		},
		{
			ID: 17, Name: "written_bytes", Unit: "bytes", Kind: KindCounter,
			Help: "bytes that calls of the write(2) family wrote", Source: "`/proc/PID/io` `wchar`",
		},
		{
			ID: 18, Name: "cpu_pressure", Unit: Nanoseconds, Kind: KindCounter, Exactness: Bound,
			Help: "time in which some task of the process' cgroup waited for a CPU", Source: "`cpu.pressure` `some`",
		},
		{
			ID: 19, Name: "memory_pressure", Unit: Nanoseconds, Kind: KindCounter, Exactness: Bound,
			Help: "time in which some task of the cgroup waited for memory", Source: "`memory.pressure` `some`",
		},
		{
			ID: 20, Name: "memory_pressure_full", Unit: Nanoseconds, Kind: KindCounter, Exactness: Bound,
			Help: "time in which all tasks of the cgroup that had work waited for memory", Source: "`memory.pressure` `full`",
		},
		{
			ID: 21, Name: "io_pressure", Unit: Nanoseconds, Kind: KindCounter, Exactness: Bound,
			Help: "time in which some task of the cgroup waited for a disk", Source: "`io.pressure` `some`",
		},
		{
			ID: 22, Name: "io_pressure_full", Unit: Nanoseconds, Kind: KindCounter, Exactness: Bound,
			Help: "time in which all tasks of the cgroup that had work waited for a disk", Source: "`io.pressure` `full`",
		},
		{
			ID: 23, Name: "bound_threads", Unit: "threads", Kind: KindGauge,
			Help: "threads that may run on fewer CPUs than the controller itself", Source: "`/proc/PID/task/*/status` `Cpus_allowed`",
		},
		{
			ID: 24, Name: "python_gc_visits", Unit: "objects", Kind: KindCounter, Exactness: Sampled,
			Help: "objects that the garbage collector of CPython 3.11 to 3.13 has looked at, about, " +
				"since the program had run for 0.25 s; each counts as often as it was looked at",
			Source: "the interpreter's `_PyRuntime`, in the memory of the process",
		},
	},
}
