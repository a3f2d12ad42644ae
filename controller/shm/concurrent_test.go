// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"sync"
	"testing"
)

// TestConcurrentUse does everything at once, then closes in the middle of it;
// the race detector and the memory protection are the judges.
func TestConcurrentUse(t *testing.T) {
	const rounds = 300
	m, app := mustApp(t, small())
	clock := NewClock()
	var all sync.WaitGroup
	repeat := func(f func(i int)) {
		all.Go(func() {
			for i := range rounds {
				f(i)
			}
		})
	}
	thread := app.Claim(1, 0)
	repeat(func(i int) { thread.Record(ticks(), 0, 0, uint64(i), 0); thread.Count(0, uint64(i)) })
	repeat(func(int) { app.SafePoint(2, 0, uint32(AtAlloc)) })
	for range 2 {
		d, dst := NewDrainer(clock), []Aggregate{}
		repeat(func(int) { m.Drain(d, func([]byte) {}) })
		repeat(func(int) { dst = m.Aggregates(dst[:0], clock.Scale()) })
		repeat(func(int) { m.Reclaim(func([]int) []int { return nil }) })
		repeat(func(int) { m.App() })
		repeat(func(i int) { setOrClear(t, m, i) })
		repeat(func(int) { postAndCancel(t, m) })
	}
	all.Go(func() {
		for range rounds / 2 {
			m.App()
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
}

func setOrClear(t *testing.T, m *Memory, i int) {
	t.Helper()
	if i%2 == 0 {
		m.ClearPoint(0)
		return
	}
	err := m.SetPoint(0, PointControl{Point: 1, Event: true, Aggregate: true})
	if err != nil && !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func postAndCancel(t *testing.T, m *Memory) {
	t.Helper()
	ticket, err := m.Post(Command{At: AtAlloc})
	if err != nil {
		if !errors.Is(err, ErrClosed) && !errors.Is(err, ErrMailboxFull) {
			t.Error(err)
		}
		return
	}
	if !m.Cancel(ticket) {
		m.Poll(ticket)
	}
}
