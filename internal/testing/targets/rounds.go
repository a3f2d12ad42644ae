// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Shares of the rounds of tests that do the same again and again.
const (
	usualShare = 0.25
	// shortShare is for the emulated processor of scripts/vm.
	shortShare = 0.05
)

// Fewer returns how often a test does what it can do n times, at least once. The
// environment variable ATTUNE_ROUNDS has the share of n, more than 0 and at most 1,
// which is that of the full suite. Without the variable it is a quarter, and a
// twentieth in a short run (go test -short), as on an emulated processor.
func Fewer(n int) int { return max(1, int(float64(n)*share())) }

// AllRounds returns whether nothing is left out: for what is worth its time in the
// full suite only.
func AllRounds() bool { return share() == 1 }

func share() float64 {
	text, set := os.LookupEnv("ATTUNE_ROUNDS")
	switch {
	case !set && testing.Short():
		return shortShare
	case !set:
		return usualShare
	}
	part, err := strconv.ParseFloat(text, 64)
	if err != nil || part <= 0 || part > 1 {
		panic(fmt.Sprintf("ATTUNE_ROUNDS is %q: want a number more than 0, at most 1", text))
	}
	return part
}
