// SPDX-License-Identifier: Apache-2.0

// Package nagle is the tunlet against connections on which each exchange waits
// for a delayed acknowledgement: the program writes a message in two parts, Nagle's
// algorithm holds the second until the first is acknowledged, and the peer, which
// has nothing to answer yet, delays that by 40 ms. TCP_NODELAY ends it.
//
// model.go is the model and free of state; the rest is package connections.
package nagle

import (
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/connections"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "nagle"

const knob = "socket.tcp_nodelay"

// New makes the tunlet.
func New() sdk.Tunlet {
	return connections.New(connections.Problem{
		Name: Name, Version: "1",
		Summary: "sends small messages at once on connections where each exchange waits for a delayed acknowledgement",
		Knobs:   []sdk.Knob{{Name: knob, Description: "small segments are sent at once (TCP_NODELAY)"}},
		// The program sleeps at least once in each exchange.
		Wake: []sdk.Wake{{Levels: []sdk.Level{{Signal: sdk.VoluntarySwitches, AtLeast: leastSleeps}}, Lasting: time.Second, Averaged: true, Detail: sdk.DetailSockets}},
		Mark: held, Judge: judge, Confidence: 0.9,
	})
}
