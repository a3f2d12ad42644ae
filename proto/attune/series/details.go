// SPDX-License-Identifier: Apache-2.0

package series

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// details is read-only.
var details = []Table{
	{
		ID: 1, Name: "threads", Of: attunev1.SubjectKind_SUBJECT_KIND_THREAD, Item: "Thread",
		Help: "the threads of a process, one by one",
		About: "At most 64 of a process in a round, in turn. Source: `/proc/PID/task/TID/stat`,\n" +
			"`schedstat` and `status`.",
		Cost: "12 µs for each thread",
		Series: []Series{
			{Name: "tid", Kind: KindNumber, Help: "thread id where the controller runs, as a change takes it in `On`"},
			{Name: "start_ticks", Unit: "ticks since boot", Kind: KindLife, Help: "with `tid` the thread's name for good"},
			{ID: 1001, Name: "name", Kind: KindText, Help: "name, at most 15 bytes"},
			{ID: 1002, Name: "state", Kind: KindText, Help: "R runs or may run, S sleeps, D waits for a disk"},
			{ID: 1003, Name: "run_nanos", Unit: Nanoseconds, Kind: KindCounter, Help: "time on a CPU"},
			{ID: 1004, Name: "wait_nanos", Unit: Nanoseconds, Kind: KindCounter, Help: "time runnable and waiting for a CPU"},
			{ID: 1005, Name: "voluntary_switches", Unit: "switches", Kind: KindCounter, Help: "context switches because it had to wait"},
			{ID: 1006, Name: "involuntary_switches", Unit: "switches", Kind: KindCounter, Help: "context switches because it was preempted, or yielded"},
			{ID: 1007, Name: "last_cpu", Unit: "CPU", Kind: KindGauge, Help: "where it ran last"},
			{ID: 1008, Name: "cpus_allowed", Unit: "list", Kind: KindText, Help: "where it may run, e.g. 0-3,8"},
		},
	},
	{
		ID: 2, Name: "sockets", Of: attunev1.SubjectKind_SUBJECT_KIND_DESCRIPTOR, Item: "Socket",
		Help: "the TCP and Unix sockets of a process, one by one",
		About: "TCP and Unix domain sockets; others only count in `total`. A socket with several\n" +
			"descriptors is told of once, by the least. One that is not in two listings of the\n" +
			"process' descriptors, 200 ms apart, is not read.\n\n" +
			"The fields from `state` on are those of `tcp_info` (linux/tcp.h), which a socket of\n" +
			"TCP has. It is borrowed (`pidfd_getfd`) when it is first read and every five seconds,\n" +
			"for some 10 µs; in between the kernel is asked by its address and cookie\n" +
			"(`sock_diag`). Unix sockets are asked for by inode. In another network namespace than\n" +
			"the controller's, and where the kernel has no `tcp_diag` or `unix_diag`, they are\n" +
			"borrowed, at most every 250 ms ([note 0029](../design/0029-details.md)).",
		Cost: "6 to 16 µs for each socket, and 5 µs for each descriptor that is listed",
		Series: []Series{
			{Name: "fd", Kind: KindNumber, Help: "descriptor, as a change takes it in `On`"},
			{Name: "inode", Kind: KindLife, Help: "tells it from a later socket with this descriptor"},
			{ID: 1101, Name: "kind", Kind: KindText, Help: "`tcp` or `unix`"},
			{ID: 1102, Name: "local", Kind: KindText, Help: "own address: host:port, or a path, @name if abstract"},
			{ID: 1103, Name: "peer", Kind: KindText, Help: "the peer's address; of a Unix socket also `socket:[INODE]`"},
			{ID: 1104, Name: "send_buffer_bytes", Unit: "bytes", Kind: KindGauge, Help: "what may wait for sending, overhead included (`SO_MEMINFO`)"},
			{ID: 1105, Name: "receive_buffer_bytes", Unit: "bytes", Kind: KindGauge, Help: "what may wait for being received, overhead included"},
			{ID: 1106, Name: "send_queued_bytes", Unit: "bytes", Kind: KindGauge, Help: "what waits for sending or acknowledgement, overhead included"},
			{ID: 1107, Name: "receive_queued_bytes", Unit: "bytes", Kind: KindGauge, Help: "what waits for being received, overhead included"},
			{ID: 1108, Name: "send_buffer_set", Kind: KindTruth, Help: "the program chose the size of the send buffer of a TCP socket (`SO_BUF_LOCK`, Linux 5.14); at most five seconds old, and false of a Unix socket"},
			{ID: 1109, Name: "receive_buffer_set", Kind: KindTruth, Help: "the program chose the size of the receive buffer, likewise"},
			{ID: 1110, Name: "state", Kind: KindText, Part: "tcp", Help: "established, listen, close-wait …"},
			{ID: 1111, Name: "no_delay", Kind: KindTruth, Part: "tcp", Help: "`TCP_NODELAY`; at most five seconds old"},
			{ID: 1112, Name: "congestion", Kind: KindText, Part: "tcp", Help: "congestion control"},
			{ID: 1113, Name: "rtt_micros", Unit: Microseconds, Kind: KindGauge, Part: "tcp", Help: "smoothed round-trip time"},
			{ID: 1114, Name: "min_rtt_micros", Unit: Microseconds, Kind: KindGauge, Part: "tcp", Help: "least round-trip time"},
			{ID: 1115, Name: "window_segments", Unit: "segments", Kind: KindGauge, Part: "tcp", Help: "congestion window"},
			{ID: 1116, Name: "segment_bytes", Unit: "bytes", Kind: KindGauge, Part: "tcp", Help: "size of a segment"},
			{
				ID: 1117, Name: "unacked_segments", Unit: "segments", Kind: KindGauge, Part: "tcp",
				Help: "sent and not acknowledged; of a listening socket, connections that wait for being accepted",
			},
			{ID: 1118, Name: "unsent_bytes", Unit: "bytes", Kind: KindGauge, Part: "tcp", Help: "in the send queue, and not sent"},
			{ID: 1119, Name: "acked_bytes", Unit: "bytes", Kind: KindCounter, Part: "tcp", Help: "what the peer has acknowledged"},
			{ID: 1120, Name: "received_bytes", Unit: "bytes", Kind: KindCounter, Part: "tcp", Help: "what came"},
			{ID: 1121, Name: "data_segments_sent", Unit: "segments", Kind: KindCounter, Part: "tcp", Help: "segments with data that were sent"},
			{ID: 1122, Name: "data_segments_received", Unit: "segments", Kind: KindCounter, Part: "tcp", Help: "segments with data that came"},
			{ID: 1123, Name: "retransmitted_segments", Unit: "segments", Kind: KindCounter, Part: "tcp", Help: "segments that were sent again"},
			{ID: 1124, Name: "delivery_rate", Unit: "bytes/s", Kind: KindGauge, Part: "tcp", Help: "at which the peer got data lately"},
			{ID: 1125, Name: "busy_nanos", Unit: Nanoseconds, Kind: KindCounter, Part: "tcp", Help: "time with something to send"},
			{ID: 1126, Name: "peer_limited_nanos", Unit: Nanoseconds, Kind: KindCounter, Part: "tcp", Help: "that part of it in which the peer's window was full"},
			{
				ID: 1127, Name: "send_buffer_limited_nanos", Unit: Nanoseconds, Kind: KindCounter, Part: "tcp",
				Help: "that part of it in which the send buffer was too small",
			},
			{ID: 1128, Name: "last_sent_millis", Unit: Milliseconds, Kind: KindGauge, Part: "tcp", Help: "time since data was sent"},
			{ID: 1129, Name: "last_received_millis", Unit: Milliseconds, Kind: KindGauge, Part: "tcp", Help: "time since data was received"},
		},
	},
	{
		ID: 3, Name: "pipes", Of: attunev1.SubjectKind_SUBJECT_KIND_DESCRIPTOR, Item: "Pipe",
		Help: "the pipes of a process, each end one by one",
		About: "Each end of a pipe is one item. Named pipes are not told of, nor what is younger than\n" +
			"two listings.",
		Cost: "3 µs for each end, and 5 µs for each descriptor that is listed",
		Series: []Series{
			{Name: "fd", Kind: KindNumber, Help: "descriptor, as a change takes it in `On`"},
			{Name: "inode", Kind: KindLife, Help: "the same at both ends, in whichever process they are"},
			{ID: 1201, Name: "writes", Kind: KindTruth, Help: "it is the end that is written to"},
			{ID: 1202, Name: "capacity_bytes", Unit: "bytes", Kind: KindGauge, Help: "what it can hold (`F_GETPIPE_SZ`)"},
			{ID: 1203, Name: "queued_bytes", Unit: "bytes", Kind: KindGauge, Help: "what waits for being read (`FIONREAD`)"},
		},
	},
	{
		ID: 4, Name: "memory", Of: attunev1.SubjectKind_SUBJECT_KIND_PROCESS, Whole: true, Item: "Memory",
		Help: "what the memory of a process is made of",
		About: "At most once a second, and only after a hundred times as long as it took to read,\n" +
			"since the kernel walks the page tables. Source: `/proc/PID/smaps_rollup` and\n" +
			"`/proc/PID/maps`.",
		Cost: "250 µs for 16 MB, 10 ms for 512 MB in small pages",
		Series: []Series{
			{ID: 1301, Name: "resident_bytes", Unit: "bytes", Kind: KindGauge, Help: "`Rss`"},
			{ID: 1302, Name: "anonymous_bytes", Unit: "bytes", Kind: KindGauge, Help: "`Anonymous`: resident and not of a file"},
			{ID: 1303, Name: "huge_bytes", Unit: "bytes", Kind: KindGauge, Help: "`AnonHugePages`: that part of it which is in huge pages"},
			{ID: 1304, Name: "hugetlb_bytes", Unit: "bytes", Kind: KindGauge, Help: "in pages of hugetlbfs, which do not count as resident"},
			{ID: 1305, Name: "swap_bytes", Unit: "bytes", Kind: KindGauge, Help: "`Swap`"},
			{ID: 1306, Name: "mappings", Unit: "mappings", Kind: KindGauge, Help: "how many there are"},
			{ID: 1307, Name: "mapped_anonymous_bytes", Unit: "bytes", Kind: KindGauge, Help: "private writable mappings without a file, used or not"},
			{ID: 1308, Name: "largest_anonymous_bytes", Unit: "bytes", Kind: KindGauge, Help: "the greatest of them"},
			{
				ID: 1309, Name: "available_bytes", Unit: "bytes", Kind: KindGauge,
				Help: "what the process could still take before somebody has to go without: `MemAvailable`, or what the memory limits of its cgroups (v1 and v2, those above it included) leave beyond what is used, file pages that are not in use aside, whichever is less; 0: unknown, or nothing",
			},
		},
	},
	{
		ID: 6, Name: "memory_nodes", Of: attunev1.SubjectKind_SUBJECT_KIND_MEMORY_NODE, Whole: true, Item: "MemoryNode",
		Help: "on which nodes (NUMA) the memory of a process lies",
		About: "At most every five seconds, and only after a hundred times as long as it took to read:\n" +
			"the kernel goes through the page tables of every mapping, with the lock on the address\n" +
			"space held for reading. Each node with memory of the process is one item. Pages that\n" +
			"processes share count in each. Source: `/proc/PID/numa_maps`.",
		Cost: "260 µs for 16 MB, 10 ms for 512 MB in small pages, with the lock on the address space held for reading meanwhile",
		Series: []Series{
			{Name: "node", Kind: KindNumber, Help: "number of the node"},
			{ID: 1401, Name: "resident_bytes", Unit: "bytes", Kind: KindGauge, Help: "memory of the process on the node"},
			{ID: 1402, Name: "share", Unit: Millionths, Kind: KindGauge, Help: "that part of the process' memory"},
			{ID: 1403, Name: "bound_bytes", Unit: "bytes", Kind: KindGauge, Help: "in mappings with another policy than the default: mbind(2), set_mempolicy(2)"},
			{ID: 1404, Name: "policy", Kind: KindText, Help: "policy that most of it has: default, bind:0, interleave:0-1, prefer:1, local"},
		},
	},
	{
		ID: 7, Name: "thread_counters", Of: attunev1.SubjectKind_SUBJECT_KIND_THREAD, Whole: true, Item: "ThreadCounter",
		Help: "what the kernel and the processor count of the threads of a process, one by one",
		About: "Counting begins when somebody wants it: values are those since then. At most 64\n" +
			"threads of a process. `switches` and `migrations` are there where this user may count\n" +
			"in the kernel, the fields from `cycles` on where the processor has counters; `error`\n" +
			"says why not. A processor with fewer counters than events takes turns: of the time\n" +
			"`enabled`, it counted for `running`, and the values are of that. Source:\n" +
			"`perf_event_open`.",
		Cost: "60 µs once and 10 to 20 µs a round for each thread, and up to 9 descriptors of the controller",
		Series: []Series{
			{Name: "tid", Kind: KindNumber, Help: "thread id where the controller runs, as a change takes it in `On`"},
			{Name: "start_ticks", Unit: "ticks since boot", Kind: KindLife, Help: "with `tid` the thread's name for good"},
			{ID: 1501, Name: "run_nanos", Unit: Nanoseconds, Kind: KindCounter, Help: "time on a CPU"},
			{ID: 1502, Name: "minor_faults", Unit: "faults", Kind: KindCounter, Help: "page faults served without waiting for a disk"},
			{ID: 1503, Name: "major_faults", Unit: "faults", Kind: KindCounter, Help: "page faults that had to wait for a disk"},
			{ID: 1504, Name: "switches", Unit: "switches", Kind: KindCounter, Part: "scheduling", Help: "context switches"},
			{ID: 1505, Name: "migrations", Unit: "migrations", Kind: KindCounter, Part: "scheduling", Help: "moves to another CPU"},
			{ID: 1506, Name: "cycles", Unit: "cycles", Kind: KindCounter, Exactness: Sampled, Part: "hardware", Help: "cycles of the processor, as fast as its clock was"},
			{ID: 1507, Name: "instructions", Unit: "instructions", Kind: KindCounter, Exactness: Sampled, Part: "hardware", Help: "instructions that were executed to the end"},
			{ID: 1508, Name: "cache_misses", Unit: "misses", Kind: KindCounter, Exactness: Sampled, Part: "hardware", Help: "misses of the last cache"},
			{ID: 1509, Name: "branch_misses", Unit: "misses", Kind: KindCounter, Exactness: Sampled, Part: "hardware", Help: "branches that were predicted wrongly"},
			{ID: 1510, Name: "enabled_nanos", Unit: Nanoseconds, Kind: KindCounter, Part: "hardware", Help: "time on a CPU in which the processor was to count"},
			{ID: 1511, Name: "running_nanos", Unit: Nanoseconds, Kind: KindCounter, Part: "hardware", Help: "that part of it in which it did"},
			{ID: 1512, Name: "user_only", Kind: KindTruth, Part: "hardware", Help: "what the kernel did for the thread is not counted"},
		},
	},
}
