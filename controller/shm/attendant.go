// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/dmlib/abi"
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

// attendance is what a Memory knows of its attendant.
type attendance struct {
	attendant Attendant
	needed    atomic.Bool // no thread came by the last time
	mu        sync.Mutex  // held while a thread is stopped: it executes all that waits
}

// SetAttendant says who helps where no thread comes by a safe point: a program
// that only computes has none. It is called before any Run.
func (m *Memory) SetAttendant(a Attendant) { m.attendance.attendant = a }

// attendable says whether a command may be executed by a thread that was
// stopped anywhere: it takes no lock of the program's.
func (c Command) attendable() bool { return c.Op != OpCall && c.Thread == 0 && c.Point == 0 }

// waitAttended is wait, with the attendant's help if no thread comes by. The
// error says why that was no help.
func (m *Memory) waitAttended(ctx context.Context, t Ticket) (r Result, done bool, err error) {
	patience := firstPatience
	if m.attendance.needed.Load() {
		patience = laterPatience
	}
	first, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if r, done = m.wait(first, t); done || ctx.Err() != nil || m.isClosed() {
		m.attendance.needed.Store(false)
		return r, done, nil
	}
	stopped, err := m.attend(ctx, t)
	r, done = m.wait(ctx, t)
	r.Stopped = stopped
	return r, done, err
}

// attend has a thread stopped until the command is no longer posted.
func (m *Memory) attend(ctx context.Context, t Ticket) (stopped time.Duration, err error) {
	m.attendance.mu.Lock()
	defer m.attendance.mu.Unlock()
	entry := m.App().AttendEntry
	for range attendTries {
		if entry == 0 || !m.posted(t) || ctx.Err() != nil {
			break
		}
		looked, took, err := m.attendance.attendant(ctx, entry)
		stopped += took
		if err != nil {
			return stopped, err
		}
		m.attendance.needed.Store(true)
		if looked == 0 {
			time.Sleep(attendPause)
		}
	}
	return stopped, nil
}

// posted says whether a command waits for a thread.
func (m *Memory) posted(t Ticket) bool {
	m.life.RLock()
	defer m.life.RUnlock()
	m.control.Lock()
	defer m.control.Unlock()
	return m.pending(t) && load32(m.data, m.commandAt(t.slot)+abi.CommandStateAt) == abi.CmdPosted
}
