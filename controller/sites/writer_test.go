// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attune-hpc/attune/controller/shm"
)

// TestMapWithoutSafePoint: a point is given back with no limit of time but this one, and
// the process that it leaves may have ended, or sleep.
func TestMapWithoutSafePoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, err := shm.New(shm.Geometry{Slots: 4, Rings: 1, RingRecords: 64})
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan error, 1)
		go func() { answered <- writer{dmlib: memory}.mapAt(t.Context(), 0x10000, 0x20000) }()
		select {
		case err := <-answered:
			if !errors.Is(err, shm.ErrNoSafePoint) {
				t.Error(err)
			}
		case <-time.After(time.Hour):
			t.Error("it waits for ever")
		}
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	})
}
