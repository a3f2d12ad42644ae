// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// restartTime is how long a restart that was announced may take to come.
const restartTime = time.Minute

// restart knows whether the end of attuned is the first half of a restart, which SIGUSR1
// announces: then what is proven good is held for the attuned that comes next.
type restart struct {
	signals chan os.Signal
	latest  chan time.Time // of the latest announcement
	done    chan struct{}
}

// newRestart hears announcements from now on, until stop.
func newRestart() *restart {
	r := &restart{signals: make(chan os.Signal, 1), latest: make(chan time.Time), done: make(chan struct{})}
	signal.Notify(r.signals, unix.SIGUSR1)
	go r.listen()
	return r
}

func (r *restart) stop() {
	signal.Stop(r.signals)
	close(r.done)
}

func (r *restart) listen() {
	var at time.Time
	for {
		select {
		case <-r.signals:
			at = time.Now()
		case r.latest <- at:
		case <-r.done:
			return
		}
	}
}

// announced says whether a restart was announced just now. It may be called until stop.
func (r *restart) announced() bool {
	select {
	case <-r.signals: // before the signal that ends attuned
		return true
	default:
		return time.Since(<-r.latest) < restartTime
	}
}
