// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package ring

// ticksAreNanoseconds is true where DMLib stamps records with CLOCK_MONOTONIC
// itself: on processors whose counter this package does not read yet.
const ticksAreNanoseconds = true

// ticks reads the clock that DMLib stamps records with.
func ticks() uint64 { return uint64(monotonicNanos()) }
