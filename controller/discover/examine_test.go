// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestDearLooks: whose patterns take long waits longer, and nobody else does.
func TestDearLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newExaminer()
		var end context.CancelFunc
		x.ctx, end = context.WithCancel(t.Context())
		began := time.Now()
		put := func(uid uint32, dear time.Duration) {
			x.put(uid, func(context.Context) examined {
				time.Sleep(dear)
				return examined{round: int(uid), dear: dear}
			})
		}
		const hostile, harmless = 4711, 4712
		for range 3 {
			put(hostile, time.Second)
		}
		put(hostile, time.Hour)
		for range 100 {
			put(harmless, time.Millisecond)
		}
		at := map[int][]time.Duration{}
		for range 104 {
			found := <-x.examined
			at[found.round] = append(at[found.round], time.Since(began))
		}
		if last := at[harmless][99]; last != 100*time.Millisecond {
			t.Errorf("the other user's are looked at after %v", last)
		}
		for i, got := range at[hostile][:3] {
			if want := time.Second + time.Duration(i)*(1+dearPause)*time.Second; got.Round(time.Second) != want {
				t.Errorf("look %d ends after %v, want %v", i, got, want)
			}
		}
		end()
		x.group.Wait()
	})
}
