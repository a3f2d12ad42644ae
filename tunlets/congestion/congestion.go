// SPDX-License-Identifier: Apache-2.0

// Package congestion is the tunlet against a congestion control that does not
// suit the path of a connection: one that paces by a model of the path (BBR) costs
// throughput where nothing is lost and the round trip takes microseconds, within a
// machine or a rack; one that takes each loss for congestion (CUBIC, Reno) costs
// throughput where segments are lost by chance on a long path.
//
// model.go is the model and free of state; the rest is package connections.
package congestion

import (
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/connections"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "congestion"

const knob = "socket.tcp_congestion"

// New makes the tunlet.
func New() sdk.Tunlet {
	return connections.New(connections.Problem{
		Name: Name, Version: "1",
		Summary: "gives bulk connections a congestion control that suits their path",
		Knobs:   []sdk.Knob{{Name: knob, Description: "congestion control of the connection"}},
		// Much data takes time in the kernel on a fast path, and sleeps for the
		// window on a long one.
		Wake: []sdk.Wake{
			{Levels: []sdk.Level{{Signal: sdk.CPUSystem, AtLeast: 2e8}, {Signal: sdk.VoluntarySwitches, AtLeast: 50}}, Lasting: 500 * time.Millisecond, Averaged: true, Detail: sdk.DetailSockets},
		},
		Judge: judge, Confidence: 0.5,
	})
}
