// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// inForce returns the ids of the changes that are in force.
func (all changes) inForce() []string {
	var ids []string
	for _, ch := range all {
		if ch.inForce() {
			ids = append(ids, ch.spec.GetId())
		}
	}
	return ids
}

// someGone says whether a process of them has ended.
func (all changes) someGone() bool {
	return slices.ContainsFunc(all, func(ch *change) bool { return ch.outcome == attunev1.Outcome_OUTCOME_GONE })
}

// defaultSafePoint is the controller's own timeout of a safe point.
const defaultSafePoint = 2 * time.Second

// safePoints returns how long the controllers may wait for the safe points of
// changes: those of one process wait one after the other.
func (all changes) safePoints() time.Duration {
	longest := defaultSafePoint
	waits := map[uint64]time.Duration{}
	for _, ch := range all {
		process := ch.spec.GetProcess()
		waits[process] += cmp.Or(time.Duration(ch.spec.GetSafePoint().GetTimeoutNanos()), defaultSafePoint)
		longest = max(longest, waits[process])
	}
	return longest
}

// changeNothing says whether every value in force is the one from before, so that there
// is nothing to judge.
func (all changes) changeNothing() bool {
	return !slices.ContainsFunc(all, func(ch *change) bool {
		from, to := ch.result.GetOldValue(), ch.result.GetNewValue()
		return ch.inForce() && (from == nil || !proto.Equal(from, to))
	})
}

// failure says why not all changes could be made.
func (all changes) failure() string {
	for _, ch := range all {
		switch ch.outcome {
		case attunev1.Outcome_OUTCOME_REFUSED, attunev1.Outcome_OUTCOME_FAILED:
			not := ""
			if ch.first > 0 {
				not = " could not be made again"
			}
			return fmt.Sprintf("%s in process %d%s: %s", ch.spec.GetKnob(), ch.spec.GetProcess(), not, ch.result.GetReason())
		}
	}
	return "not all changes were answered"
}
