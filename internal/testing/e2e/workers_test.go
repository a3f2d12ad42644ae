// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// Many too many workers: the variable is found, and set in the master, which is one
// of many processes. Functions that are not aligned leave room for a patch in one of
// two neighbours, and a uprobe costs too much in work_on.
func TestWorkersAreChosen(t *testing.T) {
	program := targets.Build(t, workloads+"master_worker.c", "-O2")
	flags := telling("workers", "object=master_worker", "variable=workers", "round=play_round", "dispatch=hand_out", "task=work_on", "most=32")
	tuneUntil(t, judged("workers", 1), flags, program, lasting, "32")
}

// telling gives a tunlet its options.
func telling(tunlet string, options ...string) (flags []string) {
	for _, option := range options {
		flags = append(flags, "--tunlet-option", tunlet+"."+option)
	}
	return flags
}
