// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New()
		quick, slow := b.Begin("quick", time.Second, true), b.Begin("slow", time.Minute, false)
		time.Sleep(time.Second)
		if s := b.Standing(); s != nil {
			t.Errorf("within their limits: %v", s)
		}
		time.Sleep(time.Second)
		want := []Standing{{Name: "quick", For: 2 * time.Second, Essential: true}}
		if diff := cmp.Diff(want, b.Standing()); diff != "" {
			t.Error(diff)
		}
		quick.Turn()
		time.Sleep(time.Minute)
		quick.Turn()
		want = []Standing{{Name: "slow", For: time.Minute + 2*time.Second}}
		if diff := cmp.Diff(want, b.Standing()); diff != "" {
			t.Error(diff)
		}
		wantIdle := map[string]time.Duration{"quick": 0, Own: time.Minute + 2*time.Second}
		if diff := cmp.Diff(wantIdle, b.Idle()); diff != "" {
			t.Error(diff)
		}
		slow.End()
		if s := b.Standing(); s != nil {
			t.Errorf("after the end: %v", s)
		}
	})
}

// Only an essential loop that stands keeps back the sign of life; each is told once for
// each time that it stands.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New()
		main, own := b.Begin("main", 5*time.Second, true), b.Begin("own", 5*time.Second, false)
		var signs, toldMain, toldOwn atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		go b.Watch(ctx, time.Second, func() { signs.Add(1) }, func(s Standing) {
			map[string]*atomic.Int64{"main": &toldMain, "own": &toldOwn}[s.Name].Add(1)
		})
		rest := func(turn ...*Loop) (count int64) {
			synctest.Wait()
			before := signs.Load()
			for range 10 {
				time.Sleep(time.Second)
				for _, l := range turn {
					l.Turn()
				}
			}
			synctest.Wait()
			return signs.Load() - before
		}
		if got := rest(main, own); got < 9 || toldMain.Load()+toldOwn.Load() != 0 {
			t.Errorf("all turn: %d signs in 10 s, told of %d and %d", got, toldMain.Load(), toldOwn.Load())
		}
		if got := rest(main); got < 9 || toldOwn.Load() != 1 || toldMain.Load() != 0 {
			t.Errorf("a loop of somebody's own stands: %d signs in 10 s, told of %d and %d", got, toldMain.Load(), toldOwn.Load())
		}
		if got := rest(own); got > 6 || toldMain.Load() != 1 {
			t.Errorf("an essential loop stands: %d signs in 10 s, told of %d and %d", got, toldMain.Load(), toldOwn.Load())
		}
		if got := rest(main, own); got < 9 || toldMain.Load() != 1 || toldOwn.Load() != 1 {
			t.Errorf("all turn again: %d signs in 10 s, told of %d and %d", got, toldMain.Load(), toldOwn.Load())
		}
		cancel()
		synctest.Wait()
	})
}

func TestNobodyAsks(t *testing.T) {
	var b *Board
	l := b.Begin("a", 0, true)
	l.Turn()
	l.End()
	if s := b.Standing(); s != nil {
		t.Errorf("no board has %v", s)
	}
}
