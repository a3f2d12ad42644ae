// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Of each process something is heard within a second: of those that wait for their turn,
// too.
func TestEntryQueueSaysWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		said := map[time.Duration][]string{}
		began := time.Now()
		q := entryQueue{atATime: 2, say: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			said[time.Since(began)] = append(said[time.Since(began)], text)
		}}
		running, most := 0, 0
		q.enterAll(t.Context(), []int{-1, -2, -3, -4, -5}, func(entry) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(1500 * time.Millisecond)
			mu.Lock()
			running--
			mu.Unlock()
		})
		count := func(at time.Duration, why string) (n int) {
			for _, text := range said[at] {
				if strings.Contains(text, why) {
					n++
				}
			}
			return n
		}
		const turn, place = "waits for its turn", "none of its threads"
		if count(entryPatience, turn) != 3 || count(entryPatience, place) != 2 || count(2500*time.Millisecond, place) != 2 || most != 2 {
			t.Errorf("%d at a time; said: %s", most, fmt.Sprint(said))
		}
	})
}

// What is quick is not spoken of.
func TestEntryQueueIsSilentWhereNothingWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered := 0
		q := entryQueue{atATime: 1, say: func(text string) { t.Errorf("said: %s", text) }}
		q.enterAll(t.Context(), []int{-1, -2, -3}, func(entry) { entered++ })
		time.Sleep(10 * entryPatience)
		if entered != 3 {
			t.Errorf("%d entered", entered)
		}
	})
}

// Those that wait for their turn are not entered any more when the command is to end.
func TestEntryQueueEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		entered := 0
		q := entryQueue{atATime: 1, say: func(string) {}}
		q.enterAll(ctx, []int{-1, -2, -3}, func(entry) {
			entered++
			cancel()
			synctest.Wait() // the others have seen it
		})
		if entered != 1 {
			t.Errorf("%d entered, want the first", entered)
		}
	})
}
