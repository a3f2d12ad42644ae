// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"slices"
)

// Tended returns the ids of the changes in force that the Actuator sees to for
// as long as they are, the earliest first.
func (a *Actuator) Tended() (ids []string) {
	for _, id := range slices.Backward(a.Applied()) {
		if change := a.force.find(id); change != nil && change.tending != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// Attend returns when ctx ends, or there is nothing left to see to: the
// processes have ended, or somebody else has undone the changes. From then on
// the Actuator sees to none of them.
func (a *Actuator) Attend(ctx context.Context) {
	for _, id := range a.Tended() {
		if change := a.force.find(id); change != nil {
			change.tending.await(ctx)
			change.tending.end()
		}
	}
}
