// SPDX-License-Identifier: Apache-2.0

package main

// What a tool does at each call.
const (
	counts  = "count"
	records = "record"
	times   = "duration"
)

// Functions of the program.
const (
	own    = "own_function"
	got    = "labs"
	kernel = "kernel_function"
)

// Variants of the program, by what they are compiled with.
const (
	plain     = ""
	mcount    = "-pg"
	patchable = "-fpatchable-function-entry=5"
	lttng     = "-DTRACEPOINT"
)

// tool is one way of watching a function's calls.
type tool struct {
	name string
	does string
	at   string // the function
	// variant of the program; tools that need one other than plain do not watch unmodified
	// programs.
	variant string
	// calls per round: few for slow tools.
	calls int
	// script runs "$@", a program and its argument, under the tool, with a
	// folder of its own as the working directory. It is what sh executes.
	script string
	// needs is a Debian package and the command by which it is known to be
	// there.
	command, pkg string
}

// perfProbe makes a uprobe under a name of its own for the time of a command.
const perfProbe = `set -e; perf probe -q -x "$1" attune_bench:call=kernel_function >&2
trap 'perf probe -q -d attune_bench:call >&2' EXIT
`

// lttngSession has a session daemon record for the time of the program.
const lttngSession = `set -e; export LTTNG_HOME="$PWD" HOME="$PWD"
lttng-sessiond --daemonize --no-kernel --pidfile="$PWD/pid" >&2
trap 'kill $(cat pid); while [ -e pid ] && kill -0 $(cat pid) 2>/dev/null; do sleep 0.05; done' EXIT
{ lttng create bench --output="$PWD/trace"; lttng enable-event -u attune_bench:call; lttng start; } >&2
"$@"
{ lttng stop; lttng destroy bench; } >&2
`

// peers are the tools of others, from Debian's packages.
var peers = []tool{
	{name: "bpftrace, count()", does: counts, at: kernel, calls: 50000, command: "bpftrace", pkg: "bpftrace",
		script: `exec bpftrace -e "uprobe:$1:kernel_function { @ = count(); }" -c "$*"`},
	{name: "perf stat", does: counts, at: kernel, calls: 50000, command: "perf", pkg: "linux-perf",
		script: perfProbe + `perf stat -o stat -e attune_bench:call "$@"`},
	{name: "ltrace -c", does: counts, at: got, calls: 500, command: "ltrace", pkg: "ltrace",
		script: `exec ltrace -c -e labs -o trace "$@"`},
	{name: "perf record", does: records, at: kernel, calls: 50000, command: "perf", pkg: "linux-perf",
		script: perfProbe + `perf record -q -e attune_bench:call -o data "$@"`},
	{name: "bpftrace, printf()", does: records, at: kernel, calls: 5000, command: "bpftrace", pkg: "bpftrace",
		script: `exec bpftrace -o trace -e "uprobe:$1:kernel_function { printf(\"%d %d\n\", nsecs, arg0); }" -c "$*"`},
	{name: "LTTng-UST tracepoint", does: records, at: own, variant: lttng, calls: 50000, command: "lttng", pkg: "lttng-tools",
		script: lttngSession},
	{name: "ltrace", does: records, at: got, calls: 500, command: "ltrace", pkg: "ltrace",
		script: `exec ltrace -e labs -o trace "$@"`},
	{name: "uftrace, -pg", does: times, at: own, variant: mcount, calls: 50000, command: "uftrace", pkg: "uftrace",
		script: `exec uftrace record -d data "$@"`},
	{name: "uftrace, patched", does: times, at: own, variant: patchable, calls: 50000, command: "uftrace", pkg: "uftrace",
		script: `exec uftrace record -P . -d data "$@"`},
	{name: "uftrace, PLT", does: times, at: got, calls: 50000, command: "uftrace", pkg: "uftrace",
		script: `exec uftrace record --force -d data "$@"`},
	{name: "bpftrace, hist(nsecs)", does: times, at: kernel, calls: 20000, command: "bpftrace", pkg: "bpftrace",
		script: `exec bpftrace -e "uprobe:$1:kernel_function { @t[tid] = nsecs; } uretprobe:$1:kernel_function { @ = hist(nsecs - @t[tid]); delete(@t[tid]); }" -c "$*"`},
}

// ours is what Attune does, by the words of its counting tunlet.
type ours struct {
	does, at, point string
}

var attunes = []ours{
	{counts, own, "*:own_function"},
	{counts, got, "libc.so.6:labs@got"},
	{counts, kernel, "*:kernel_function"},
	{records, own, "*:own_function@events"},
	{records, got, "libc.so.6:labs@got@events"},
	{records, kernel, "*:kernel_function@events"},
	{times, own, "*:own_function@time"},
	{times, got, "libc.so.6:labs@time"},
	{times, kernel, "*:kernel_function@time"},
}
