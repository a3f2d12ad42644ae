// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
)

// entryPatience is after what time it is said of a process why it is not entered yet.
const entryPatience = time.Second

// entryQueue has processes entered side by side, some at a time, and says of each that
// takes longer what it waits for.
type entryQueue struct {
	// atATime is how many are entered at a time.
	atATime int
	// say takes a sentence for people; it may be called by several goroutines.
	say func(text string)
}

// entry is a process that is to be entered.
type entry struct {
	pid  int
	name string      // for people
	slow *time.Timer // says that it is not entered yet, unless it is stopped
}

// enterAll calls enter for each process, unless ctx ends before its turn, and returns when
// all calls have.
func (q entryQueue) enterAll(ctx context.Context, pids []int, enter func(entry)) {
	places := make(chan struct{}, q.atATime)
	var all sync.WaitGroup
	for _, pid := range pids {
		e := entry{pid: pid, name: procs.Called(pid)}
		all.Go(func() {
			if !q.await(ctx, places, e) {
				return
			}
			defer func() { <-places }()
			e.slow = time.AfterFunc(entryPatience, func() {
				q.say(e.name + " is not entered yet: none of its threads has come to a place where it may be stopped, or the machine is busy")
			})
			defer e.slow.Stop()
			enter(e)
		})
	}
	all.Wait()
}

// await takes a place; false if ctx ends first.
func (q entryQueue) await(ctx context.Context, places chan<- struct{}, e entry) bool {
	slow := time.After(entryPatience)
	for {
		select {
		case places <- struct{}{}:
			return true
		case <-slow:
			q.say(fmt.Sprintf("%s is not entered yet: it waits for its turn, %d are entered at a time", e.name, q.atATime))
		case <-ctx.Done():
			return false
		}
	}
}
