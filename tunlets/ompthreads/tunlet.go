// SPDX-License-Identifier: Apache-2.0

package ompthreads

import (
	"github.com/attune-hpc/attune/tunlets/kit/openmp"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "omp-threads"

// Tunlet follows the OpenMP processes of a session. Made by New.
type Tunlet struct{ *openmp.Processes }

// New makes the tunlet.
func New() sdk.Tunlet {
	takes := func(openmp.Runtime) bool { return true }
	return Tunlet{openmp.NewProcesses(takes, func(host string) openmp.Node { return newNode(host) })}
}

// Describe says what the tunlet is.
func (Tunlet) Describe() sdk.Description {
	return sdk.Description{
		Name: Name, Version: "1",
		Summary:   "gives OpenMP programs as many threads as there are CPUs, where there are more",
		Objective: openmp.Objective(),
		Knobs: []sdk.Knob{{
			Name: knob, Description: "threads of the parallel regions that the program's first thread begins",
			Min: sdk.Uint(1), Max: sdk.Uint(1 << 16),
		}},
		MaxTries: openmp.MaxTries, MinGain: 0.05,
		Wake: openmp.Wakes(openmp.Waits()),
	}
}
