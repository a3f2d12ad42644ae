// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"runtime"
	"strconv"

	"github.com/attune-hpc/attune/bench/internal/measure"
)

// workersCases have a worker too few and many too many.
func workersCases() []Case {
	line := func(workers int) []string { return []string{"{bin}/master_worker", "{seconds}", strconv.Itoa(workers)} }
	flags := tells("workers", map[string]string{
		"object": "master_worker", "variable": "workers", "round": "play_round", "dispatch": "hand_out", "task": "work_on", "most": "32",
	})
	best := Static{Command: line(min(32, runtime.NumCPU()))}
	return []Case{
		{
			Name: "workers/one", Tunlet: "workers", Unit: "rounds/s", Format: measure.Native(),
			Sources: []Source{{Name: "master_worker"}}, Command: line(1), Flags: flags, Best: best,
		},
		{
			Name: "workers/too many", Tunlet: "workers", Unit: "rounds/s", Format: measure.Native(),
			Sources: []Source{{Name: "master_worker"}}, Command: line(32), Flags: flags, Best: best,
		},
	}
}

// factoringCases have a slow worker that gets as much as the others.
func factoringCases() []Case {
	return []Case{{
		Name: "factoring/one is slow", Tunlet: "factoring", Unit: "rounds/s", Format: measure.Native(),
		Sources: []Source{{Name: "self_schedule", Flags: []string{"-pthread", "-lm"}}},
		Command: []string{"{bin}/self_schedule", "{seconds}", "1"},
		Flags: tells("factoring", map[string]string{
			"object": "self_schedule", "variable": "factor", "round": "play_round", "dispatch": "take_piece", "task": "work_item",
		}),
		Best: Static{Command: []string{"{bin}/self_schedule", "{seconds}", "0.25"}},
	}}
}

// tells gives a tunlet its options.
func tells(tunlet string, options map[string]string) (flags []string) {
	for name, value := range options {
		flags = append(flags, "--tunlet-option", tunlet+"."+name+"="+value)
	}
	return flags
}
