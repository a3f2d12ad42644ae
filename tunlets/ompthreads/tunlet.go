// SPDX-License-Identifier: Apache-2.0

package ompthreads

import (
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/openmp"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "omp-threads"

// Tunlet follows the OpenMP processes of a session. Made by New.
type Tunlet struct{ *openmp.Processes }

// New makes the tunlet.
func New() sdk.Tunlet {
	return Tunlet{openmp.NewProcesses(openmp.Any, func(host string) openmp.Node { return newNode(host) })}
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
		Wake: wakes(),
	}
}

// moreThreads is by how much more threads than CPUs there are at least, as a ratio,
// with as many CPUs as any machine has.
const moreThreads = 1 + 1.0/(1<<14)

// wakes are met by a process that is crowded, see [load].
func wakes() []sdk.Wake {
	return openmp.Wakes(openmp.Any, openmp.Waits(),
		sdk.Level{Signal: sdk.RunTime, AtLeast: leastRun * float64(time.Second)},
		sdk.Level{Signal: sdk.Threads, AtLeast: moreThreads, Of: sdk.CPUsAllowed})
}
