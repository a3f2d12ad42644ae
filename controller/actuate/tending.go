// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"slices"
)

// tending is the work that a change needs for as long as it is in force; nil:
// none.
type tending struct {
	cancel context.CancelFunc
	over   chan struct{}
}

// startTending begins it. Whoever takes the change out of force ends it.
func startTending(tend func(context.Context)) *tending {
	if tend == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &tending{cancel: cancel, over: make(chan struct{})}
	go func() {
		defer close(t.over)
		tend(ctx)
	}()
	return t
}

// end ends it and waits for that.
func (t *tending) end() {
	if t == nil {
		return
	}
	t.cancel()
	<-t.over
}

// Tended returns the ids of the changes in force that the Actuator sees to for
// as long as they are, the earliest first.
func (a *Actuator) Tended() (ids []string) {
	for _, id := range slices.Backward(a.Applied()) {
		if change := a.find(id); change != nil && change.tending != nil {
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
		change := a.find(id)
		if change == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-change.tending.over:
		}
		change.tending.end()
	}
}
