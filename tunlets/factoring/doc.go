// SPDX-License-Identifier: Apache-2.0

// Package factoring is the tunlet that chooses how much work the master of a
// master/worker program hands out at a time: a large piece at the end of a round
// leaves the other workers idle, small pieces cost a hand-out each. Factoring
// hands out a part of what is left, again and again.
//
// model.go has the factors and the simulation, free of state; items.go keeps what
// was measured of single items; tunlet.go connects them to package masterworker.
package factoring
