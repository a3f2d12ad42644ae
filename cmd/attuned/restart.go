// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// restartTime is how long a restart that was announced may take to come.
const restartTime = time.Minute

// restart knows whether the end of attuned is the first half of a restart, which SIGUSR1
// announces: then what is proven good is held for the attuned that comes next.
type restart struct {
	signals chan os.Signal
	at      atomic.Int64 // Unix nanoseconds of the latest announcement
}

func newRestart() *restart {
	r := &restart{signals: make(chan os.Signal, 1)}
	signal.Notify(r.signals, unix.SIGUSR1)
	return r
}

// listen hears announcements until ctx ends.
func (r *restart) listen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.signals:
			r.at.Store(time.Now().UnixNano())
		}
	}
}

// announced says whether a restart was announced just now.
func (r *restart) announced() bool {
	select {
	case <-r.signals: // before the signal that ends attuned
		return true
	default:
		return time.Since(time.Unix(0, r.at.Load())) < restartTime
	}
}
