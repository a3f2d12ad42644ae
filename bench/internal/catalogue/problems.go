// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"runtime"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// bestMalloc keeps all memory that was once given: what mallopt would set.
// 32 MB is the largest threshold that glibc takes.
var bestMalloc = Static{Environment: []string{"GLIBC_TUNABLES=glibc.malloc.mmap_threshold=33554432" +
	":glibc.malloc.trim_threshold=1073741824:glibc.malloc.top_pad=67108864"}}

func mallocCases() []Case {
	return []Case{
		{
			Name: "malloc/C", Tunlet: "malloc", Unit: "it/s", Format: measure.Native(),
			Sources: []Source{{Name: "malloc_storm"}},
			Command: []string{"{bin}/malloc_storm", "{seconds}"},
			Best:    bestMalloc,
		},
		{
			Name: "malloc/numpy", Tunlet: "malloc", Debian: true, Unit: "it/s", Format: measure.Native(),
			Needs:   []Need{{Module: "numpy", Package: "python3-numpy"}},
			Command: []string{workload.DebianPython, "{src}/numpy_storm.py", "{seconds}"},
			Best:    bestMalloc,
		},
	}
}

// mpiProgressCases have twice as many ranks as cores.
func mpiProgressCases() []Case {
	ranks := 2 * runtime.NumCPU()
	best := Static{Environment: []string{"OMPI_MCA_mpi_yield_when_idle=1"}}
	return []Case{
		{
			Name: "mpi-progress/C", Tunlet: "mpi-progress", Unit: "it/s", Format: measure.Native(),
			Needs:   needsOpenMPI(),
			Sources: []Source{exchange()},
			Command: openMPI(ranks, "{bin}/mpi_exchange", "{seconds}"),
			Best:    best,
		},
		{
			Name: "mpi-progress/LAMMPS", Tunlet: "mpi-progress", Debian: true, Unit: "steps/s", Format: measure.LAMMPS(),
			Needs:   append(needsOpenMPI(), Need{Command: "lmp", Package: "lammps"}),
			Command: openMPI(ranks, "lmp", "-in", "{src}/in.melt", "-log", "none", "-var", "seconds", "{seconds}"),
			Best:    best,
		},
	}
}

func pipeCases() []Case {
	return []Case{{
		Name: "pipe/C", Tunlet: "pipe", Unit: "MB/s", Format: measure.Native(),
		Sources: []Source{{Name: "pipe_stream"}},
		Command: []string{"{bin}/pipe_stream", "{seconds}"},
		Best:    Static{Command: []string{"{bin}/pipe_stream", "{seconds}", "1048576"}},
	}}
}

// stdioCases write a line at a time.
func stdioCases() []Case {
	writer := []string{"{bin}/line_writer", "{seconds}"}
	return []Case{
		{
			Name: "stdio/C", Tunlet: "stdio", Unit: "lines/s", Format: measure.Native(),
			Sources: []Source{{Name: "line_writer"}},
			Command: append(writer[:2:2], "line"), Best: Static{Command: append(writer[:2:2], "full")},
		},
		{
			Name: "stdio/cut", Tunlet: "stdio", Debian: true, Unit: "lines/s",
			Format:  measure.Summary(`^(?P<count>\d+) lines in (?P<seconds>\S+) s`),
			Command: cut("stdbuf -oL cut"), Best: Static{Command: cut("stdbuf -o64K cut")},
		},
	}
}

// cut takes two fields of each line, and has somebody count them.
func cut(command string) []string {
	return shell(`echo "$(yes 'some fields of a line, and more' | timeout {seconds} ` + command + ` -d' ' -f1,7 | wc -l) lines in {seconds} s"`)
}

// affinityCases are bound to the wrong CPUs, but for perf bench: where the machine is
// idle the scheduler puts its two processes on two CPUs.
func affinityCases() []Case {
	native := measure.Native()
	xz := []string{"xz", "--threads=2", "--stdout", "-0", "{sample}"}
	trips := []string{"perf", "bench", "sched", "pipe"} // a million of them, unless it is told
	return []Case{
		{
			Name: "affinity/bound in C", Tunlet: "affinity", Unit: "it/s", Format: native,
			Sources: []Source{{Name: "bound_exchange"}},
			Command: []string{"{bin}/bound_exchange", "{seconds}"},
			Best:    Static{Command: []string{"{bin}/bound_exchange", "{seconds}", "free"}},
		},
		{
			Name: "affinity/pair in C", Tunlet: "affinity", Unit: "trips/s", Format: native,
			Sources: []Source{{Name: "ping_pong"}},
			Command: []string{"{bin}/ping_pong", "{seconds}", "apart"},
			Best:    Static{Command: []string{"{bin}/ping_pong", "{seconds}", "together"}},
		},
		{
			Name: "affinity/perf bench", Tunlet: "affinity", Debian: true,
			Needs:   []Need{{Command: "perf", Package: "linux-perf"}},
			Command: trips,
			Best:    Static{Command: append([]string{"taskset", "-c", "0"}, trips...)},
		},
		{
			Name: "affinity/xz, two threads on one core", Tunlet: "affinity", Debian: true,
			Needs:   []Need{{Command: "xz", Package: "xz-utils"}},
			Command: append([]string{"taskset", "-c", "0"}, xz...), Best: Static{Command: xz},
		},
	}
}

// aggregationCases have a variable that says how many items go into a message. What
// counts is items per second, for which the most that the program bears is best; the
// tunlet is told so by the price of a message, 100 ms, as on the longest of ways. Who
// waits for an item would tell it less, and get fewer of them in a message.
func aggregationCases() []Case {
	return []Case{{
		Name: "aggregation/TCP", Tunlet: "aggregation", Unit: "items/s", Format: measure.Native(),
		Sources: []Source{{Name: "item_sender"}},
		Command: []string{"{bin}/item_sender", "{seconds}"},
		Flags:   []string{"--tunlet-option", "aggregation.variable=items_per_message", "--tunlet-option", "aggregation.latency=100ms", "--tunlet-option", "aggregation.most=1024"},
		Best:    Static{Command: []string{"{bin}/item_sender", "{seconds}", "1024"}},
	}}
}
