// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Attendant stops some thread of the application, wherever it is, has it call
// the function at entry, which takes no parameters and no lock, and lets it go
// on. It returns what the function returned, and for how long the thread did
// not do its own work.
type Attendant func(ctx context.Context, entry uint64) (value uint64, stopped time.Duration, err error)

const (
	// firstPatience is how long a command waits for a thread to come by before
	// the attendant is called; laterPatience when none came the last time.
	firstPatience = 10 * time.Millisecond
	laterPatience = 2 * time.Millisecond
	// attendPause follows a stop that hit a thread inside DMLib, which is rare:
	// attendTries of them mean that DMLib is inert.
	attendPause = time.Millisecond
	attendTries = 8
)

// attendance waits for results, with the help of an attendant.
type attendance struct {
	mailbox   *Mailbox
	attendant Attendant   // may be nil
	needed    atomic.Bool // no thread came by the last time
	mu        sync.Mutex  // held while a thread is stopped: it executes all that waits
}

// waitAttended is wait, with the attendant's help if no thread comes by. The
// error says why that was no help.
func (a *attendance) waitAttended(ctx context.Context, t Ticket) (r Result, done bool, err error) {
	patience := firstPatience
	if a.needed.Load() {
		patience = laterPatience
	}
	first, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if r, done = a.mailbox.wait(first, t); done || ctx.Err() != nil || a.mailbox.isClosed() {
		a.needed.Store(false)
		return r, done, nil
	}
	stopped, err := a.attend(ctx, t)
	r, done = a.mailbox.wait(ctx, t)
	r.Stopped = stopped
	return r, done, err
}

// attend has a thread stopped until the command is no longer posted.
func (a *attendance) attend(ctx context.Context, t Ticket) (stopped time.Duration, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.mailbox.app().AttendEntry
	for range attendTries {
		if entry == 0 || !a.mailbox.posted(t) || ctx.Err() != nil {
			break
		}
		looked, took, err := a.attendant(ctx, entry)
		stopped += took
		if err != nil {
			return stopped, err
		}
		a.needed.Store(true)
		if looked == 0 {
			time.Sleep(attendPause)
		}
	}
	return stopped, nil
}
