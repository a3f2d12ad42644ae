// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// InstructionClass says how the kernel executes the instruction under a
// uprobe, which is nearly all of the probe's price.
type InstructionClass int

// Classes of probed instructions.
const (
	// InstructionUnknown could not be decoded; taken as single-stepped.
	InstructionUnknown InstructionClass = iota
	// InstructionOptimised: a 5-byte nop that the kernel turns into a call.
	InstructionOptimised
	// InstructionEmulated: executed by the kernel itself.
	InstructionEmulated
	// InstructionSingleStepped: executed out of line, with a second trap.
	InstructionSingleStepped
	// InstructionRefused: the kernel puts no probe here.
	InstructionRefused
)

// instruction is the verdict on one probed instruction.
type instruction struct {
	class InstructionClass
	// reason is why it is refused.
	reason string
}

// Prices of one hit at function entry, measured (medians) on a virtual machine
// with a 2.6 GHz processor and Linux 6.18. They serve where this machine's could
// not be measured; machines differ, single-stepping most.
const (
	costOptimised     = 360 * time.Nanosecond
	costEmulated      = 520 * time.Nanosecond
	costSingleStepped = 9700 * time.Nanosecond
	// What a probe at the exit, or at both, adds to that. Both remembers the
	// call in a hash map, which is a third of its price.
	costExit = 280 * time.Nanosecond
	costBoth = 650 * time.Nanosecond
)

// cost estimates the price of one hit.
func (c InstructionClass) cost(place attunev1.Place) time.Duration {
	var cost time.Duration
	switch c {
	case InstructionRefused:
		return 0
	case InstructionOptimised:
		cost = costOptimised
	case InstructionEmulated:
		cost = costEmulated
	default:
		cost = costSingleStepped
	}
	switch place {
	case attunev1.Place_PLACE_EXIT:
		cost += costExit
	case attunev1.Place_PLACE_BOTH:
		cost += costBoth
	}
	return cost
}

// prices are what a hit at an entry costs by class; those that are not there
// are not measured.
type prices map[InstructionClass]time.Duration

// of is the price of a hit at a place, and whether it was measured.
func (p prices) of(class InstructionClass, place attunev1.Place) (cost time.Duration, measured bool) {
	cost = class.cost(place)
	atEntry, measured := p[class]
	if class == InstructionRefused || !measured {
		return cost, false
	}
	// The kernel's work at exits grows with that at entries.
	return time.Duration(float64(cost) * float64(atEntry) / float64(class.cost(attunev1.Place_PLACE_ENTRY))), true
}
