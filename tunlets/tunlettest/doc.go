// SPDX-License-Identifier: Apache-2.0

// Package tunlettest tests tunlets: a Harness drives one over a real gRPC
// connection, in simulated time, with simulated processes; Suite is what every
// tunlet must pass, and Conformance the same for one that is a process of its own
// (`attune tunlet test`).
//
//	h := tunlettest.Start(t, mytunlet.New, nil)
//	p := h.StartProcess(&tunlettest.Process{Rates: map[sdk.Signal]float64{sdk.MinorFaults: 8e5}})
//	h.Run(400 * time.Millisecond)
//	if len(h.Proposals) != 1 { ... }
//
// Replay drives a tunlet with a recording of a real program instead.
//
// Nothing sleeps: a second of a program takes as long as the tunlet takes to
// think about it. A Harness belongs to the goroutine of its test.
package tunlettest
