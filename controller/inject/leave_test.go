// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/internal/dmtest"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestGiveBackRefused: of two threads that write to the read-only page of slots one is
// refused, and what leads elsewhere by now has not stayed.
func TestGiveBackRefused(t *testing.T) {
	memory, err := shm.New(shm.Geometry{Slots: 4, Rings: 1, RingRecords: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	}()
	app := dmtest.Map(t, memory.File().Fd())
	answers := map[uint64][]unix.Errno{
		8: {unix.EBUSY, unix.EBUSY, 0}, 16: {unix.EBUSY, unix.EAGAIN}, 24: {unix.EFAULT},
	}
	ctx, cancel := context.WithCancel(patience.Context(t))
	var done atomic.Bool
	go func() { // comes to a hook all the time
		defer done.Store(true)
		for ctx.Err() == nil {
			for i := range shm.MailboxSize {
				if c := app.Command(i); c.Claim(uint32(shm.AtHooks)) {
					at := c.Arg(0)
					c.Finish(1, 0, 0, int(answers[at][0]))
					answers[at] = answers[at][1:]
				}
			}
			time.Sleep(10 * time.Microsecond)
		}
	}()
	stayed := GiveBack(ctx, memory, []shm.Slot{{Address: 8, RELRO: true}, {Address: 16, RELRO: true}, {Address: 24}})
	cancel()
	patience.Until(t, "the application ends", done.Load)
	if len(stayed) != 1 || stayed[0].Address != 24 {
		t.Errorf("stayed: %+v", stayed)
	}
}
