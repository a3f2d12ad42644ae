// SPDX-License-Identifier: Apache-2.0

package ompspin

import (
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/openmp"
	"github.com/attune-hpc/attune/tunlets/kit/spin"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "omp-spin"

// Tunlet follows the OpenMP processes of a session. Made by New.
type Tunlet struct{ *openmp.Processes }

// New makes the tunlet.
func New() sdk.Tunlet {
	return Tunlet{openmp.NewProcesses(gnu, func(host string) openmp.Node { return newNode(host) })}
}

// Describe says what the tunlet is.
func (Tunlet) Describe() sdk.Description {
	return sdk.Description{
		Name: Name, Version: "1",
		Summary:   "lets OpenMP threads that wait sleep while several teams share CPUs, and spin again when one is alone",
		Objective: openmp.Objective(),
		Knobs: []sdk.Knob{{
			Name: knob, Description: "turns that a thread of libgomp spins before it sleeps",
			Min: sdk.Uint(0), Max: sdk.Uint(30_000_000_000),
		}},
		MaxTries: openmp.MaxTries, MinGain: 0.05,
		Wake: wakes(),
	}
}

// gnu says that a run-time has the knob.
func gnu(r openmp.Runtime) bool { return r.GNU }

// wakes are met by a team of libgomp that spins, see [load].
func wakes() []sdk.Wake {
	return openmp.Wakes(gnu, openmp.Waits(),
		sdk.Level{Signal: sdk.RunTime, AtLeast: leastRun * float64(time.Second)},
		sdk.Level{Signal: sdk.RunTime, AtLeast: float64(time.Second) / spin.MaxVoluntary, Of: sdk.VoluntarySwitches},
		sdk.Level{Signal: sdk.Threads, AtLeast: 2},
		sdk.Level{Signal: sdk.CPUsAllowed, AtLeast: 1, Of: sdk.Threads})
}
