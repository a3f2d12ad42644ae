// SPDX-License-Identifier: Apache-2.0

package ompspin

import (
	"github.com/attune-hpc/attune/tunlets/kit/openmp"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "omp-spin"

// Tunlet follows the OpenMP processes of a session. Made by New.
type Tunlet struct{ *openmp.Processes }

// New makes the tunlet.
func New() sdk.Tunlet {
	takes := func(r openmp.Runtime) bool { return r.GNU }
	return Tunlet{openmp.NewProcesses(takes, func(host string) openmp.Node { return newNode(host) })}
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
		Wake: openmp.Wakes(openmp.Waits()),
	}
}
