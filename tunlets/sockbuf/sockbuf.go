// SPDX-License-Identifier: Apache-2.0

// Package sockbuf is the tunlet against send buffers that are too small: a program
// has set SO_SNDBUF, which turns the kernel's own tuning of it off, to less than
// the connection could carry. Everything that fits is on its way, nothing waits
// to be sent, and the program sleeps until there is room again. The kernel is
// given its tuning back.
//
// model.go is the model and free of state; the rest is package connections.
package sockbuf

import (
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/connections"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "sockbuf"

const knob = "socket.so_sndbuf"

// New makes the tunlet.
func New() sdk.Tunlet {
	return connections.New(connections.Problem{
		Name: Name, Version: "1",
		Summary: "lets the kernel size send buffers that a program has made too small for its connections",
		Knobs:   []sdk.Knob{{Name: knob, Description: "size of the send buffer; auto: the kernel's own tuning, up to net.ipv4.tcp_wmem"}},
		// The program sleeps for each buffer that it fills.
		Wake: []sdk.Wake{{Levels: []sdk.Level{{Signal: sdk.VoluntarySwitches, AtLeast: leastSleeps}}, Lasting: 500 * time.Millisecond, Averaged: true, Detail: sdk.DetailSockets}},
		Mark: limited, Judge: judge, Confidence: 0.8,
	})
}
