// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// An announcement counts however short before the end it comes: also when it was taken, and
// nothing was done with it yet.
func TestAnnouncedShortBeforeTheEnd(t *testing.T) {
	for range 20_000 {
		r := newRestart()
		r.signals <- unix.SIGUSR1
		announced := r.announced()
		r.stop()
		if !announced {
			t.Fatal("the restart was announced, and is taken for an end")
		}
	}
}

func TestAnnouncementGrowsOld(t *testing.T) {
	newRestart().stop() // the first in a process starts a goroutine that waits for signals, of no bubble
	for _, tt := range []struct {
		ago  time.Duration
		want bool
	}{{restartTime - time.Second, true}, {restartTime + time.Second, false}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRestart()
			defer r.stop()
			r.signals <- unix.SIGUSR1
			time.Sleep(tt.ago)
			if got := r.announced(); got != tt.want {
				t.Errorf("announced %s ago: %v, want %v", tt.ago, got, tt.want)
			}
		})
	}
}
