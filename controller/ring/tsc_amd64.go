// SPDX-License-Identifier: Apache-2.0

package ring

// ticksAreNanoseconds is true where DMLib stamps records with CLOCK_MONOTONIC
// itself.
const ticksAreNanoseconds = false

// ticks reads the time-stamp counter that DMLib stamps records with.
//
//go:noescape
func ticks() uint64
