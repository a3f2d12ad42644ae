// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/readers"
)

// TestDearLooks: whoever has looked at what takes long, or at very many processes, waits
// longer, and nobody else does.
func TestDearLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newExaminer()
		var end context.CancelFunc
		x.ctx, end = context.WithCancel(t.Context())
		began := time.Now()
		x.clock = func() time.Duration { return time.Since(began) }
		put := func(uid uint32, takes time.Duration) {
			x.put(uid, func(context.Context) examined {
				time.Sleep(takes)
				return examined{round: int(uid)}
			})
		}
		const hostile, busy, harmless, each = 4711, 4712, 4713, 100
		for range each {
			put(hostile, time.Second)
			put(harmless, time.Millisecond)
		}
		for range 20 * each {
			put(busy, time.Millisecond)
		}
		at := map[int][]time.Duration{}
		for len(at[busy]) < 20*each || len(at[harmless]) < each || len(at[hostile]) < 3 {
			found := <-x.examined
			at[found.round] = append(at[found.round], time.Since(began))
		}
		if last := at[harmless][each-1]; last != each*time.Millisecond {
			t.Errorf("the other user's are looked at after %v", last)
		}
		if third, want := at[hostile][2], 2*time.Second+shareOfUser*(2*time.Second-burstOfUser); third != want {
			t.Errorf("the third look of a second ends after %v, want %v", third, want)
		}
		if last, want := at[busy][20*each-1], shareOfUser*time.Second; last < want-time.Second || last > want {
			t.Errorf("looks of 2s together, 1s of them at once, end after %v, want %v", last, want)
		}
		end()
		x.group.Wait()
	})
}

// TestLookedAtAgain: where this machine was short of something, a process is looked at again; one
// that cannot be described never can.
func TestLookedAtAgain(t *testing.T) {
	for _, tt := range []struct {
		failed error
		again  bool
	}{
		{nil, false},
		{fmt.Errorf("start a helper: %w", &os.PathError{Op: "fork/exec", Path: "attuned", Err: unix.EAGAIN}), true},
		{fmt.Errorf("pair of sockets: %w", unix.EMFILE), true},
		{readers.ErrRefused, false},
		{errors.New("no program"), false},
	} {
		d := &decider{log: slog.New(slog.DiscardHandler)}
		d.examined(examined{failed: tt.failed})
		if d.skipped != tt.again {
			t.Errorf("%v: looked at again %v, want %v", tt.failed, d.skipped, tt.again)
		}
	}
}
