// SPDX-License-Identifier: Apache-2.0

package catalogue

import "github.com/attune-hpc/attune/bench/internal/measure"

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
