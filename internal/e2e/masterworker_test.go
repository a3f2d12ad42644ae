// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"

	"github.com/attune-hpc/attune/internal/targets"
)

// Many too many workers: the variable is found, set in the master, which is one of
// many processes, and kept. Functions that are not aligned leave room for a patch in
// one of two neighbours, and a uprobe costs too much in work_on.
func TestWorkersAreChosen(t *testing.T) {
	program := targets.Build(t, workloads+"master_worker.c", "-O2")
	flags := telling("workers", "object=master_worker", "variable=workers", "round=play_round", "dispatch=hand_out", "task=work_on", "most=32")
	mustBeTuned(t, func() string {
		_, r := runTuned(t, flags, program, "30", "32")
		return unlessGained(r, "workers", 1, 0, 0, 0)
	})
}

// Equal shares for a worker that is slow. Its functions are called too often for
// uprobes, and only where they are aligned, as from -O2 on, is there room for a patch.
func TestPiecesAreChosen(t *testing.T) {
	program := targets.Build(t, workloads+"self_schedule.c", "-O2", "-lm")
	flags := telling("factoring", "object=self_schedule", "variable=factor", "round=play_round", "dispatch=take_piece", "task=work_item")
	mustBeTuned(t, func() string {
		_, r := runTuned(t, flags, program, "45", "1")
		return unlessGained(r, "factoring", 1, 0, 0, 0)
	})
}

// telling gives a tunlet its options.
func telling(tunlet string, options ...string) (flags []string) {
	for _, option := range options {
		flags = append(flags, "--tunlet-option", tunlet+"."+option)
	}
	return flags
}
