// SPDX-License-Identifier: Apache-2.0

package track

import (
	"container/heap"
	"time"

	"github.com/attune-hpc/attune/internal/beat"
)

// dueItem is a look at a member that is due at a time, unless its image has
// been replaced by then.
type dueItem struct {
	at     time.Time
	member *member
	handle uint64 // 0: forked, not told of
}

// dueHeap is a container/heap, the earliest first.
type dueHeap []dueItem

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *dueHeap) Push(item any) { *h = append(*h, item.(dueItem)) }

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	item := (*h)[last]
	(*h)[last] = dueItem{}
	*h = (*h)[:last]
	return item
}

// agenda is when members are to be looked at.
type agenda struct{ due dueHeap }

// schedule has the present image of a member looked at.
func (a *agenda) schedule(m *member, after time.Duration) {
	heap.Push(&a.due, dueItem{beat.Near(time.Now().Add(after)), m, m.message.GetHandle()})
}

// untilDue returns how long nobody needs to be looked at.
func (a *agenda) untilDue() time.Duration {
	if len(a.due) == 0 {
		return time.Hour
	}
	return time.Until(a.due[0].at)
}

// next returns a look that was due at that time, and forgets it; false if there is none.
func (a *agenda) next(now time.Time) (dueItem, bool) {
	if len(a.due) == 0 || a.due[0].at.After(now) {
		return dueItem{}, false
	}
	return heap.Pop(&a.due).(dueItem), true
}

// refreshDelay makes looks at an image rarer with its age: most libraries are
// loaded at the start.
func refreshDelay(done int) time.Duration {
	first := []time.Duration{10 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond}
	const oneMinute = 64
	switch {
	case done < len(first):
		return first[done]
	case done < oneMinute:
		return time.Second
	}
	return 5 * time.Second
}
