// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"errors"
	"time"

	"github.com/attune-hpc/attune/internal/proc"
)

// ErrBusy says that the threads of a process could not all be held at a place
// where its code may be changed, in as many tries as it may be disturbed by.
var ErrBusy = errors.New("code cannot be changed while its threads run")

const (
	// MaxHeld is how many threads are stopped together. More would take too long.
	MaxHeld = 1000
	// mostHeld and mostHeldEach, for every thread, bound how long threads stand
	// still for one try: until the code is written, letting them go takes some
	// more.
	mostHeld     = 20 * time.Millisecond
	mostHeldEach = 50 * time.Microsecond
	// holdTries is how often that is tried, and holdPause lies between two.
	holdTries = 8
	holdPause = 5 * time.Millisecond
)

// Rewritten tells what changing code took.
type Rewritten struct {
	// Threads that were held.
	Threads int
	// Stopped is how long, from when the first was told to stop until the last
	// was let go, and Tries how often, the one that succeeded included.
	Stopped time.Duration
	Tries   int
}

// Rewrite writes to at an address of a process' code where from stands, both
// equally long, with all threads stopped, none of them within the bytes: at
// neither address but the first, nor, as far as stacks and signal frames show,
// to come back to one. It is like letting a debugger in for a moment: no thread
// executes anything for us, what was interrupted is restarted, and if this
// process is killed the kernel lets all of them go.
//
// Nothing has changed if the error is not nil. It wraps [ErrBusy], or
// [ErrUnsuited] for a process that has more than [MaxHeld] threads, is stopped
// or traced, or shares its memory with another one; else [ErrDenied] or
// [proc.ErrImageGone] or procid.ErrGone.
func Rewrite(ctx context.Context, process *proc.Handle, address uint64, from, to []byte) (result Rewritten, err error) {
	err = ErrBusy
	for result.Tries < holdTries && errors.Is(err, ErrBusy) && ctx.Err() == nil {
		if result.Tries > 0 {
			time.Sleep(holdPause)
		}
		result.Tries++
		onOwnThread(func() { result.Threads, result.Stopped, err = rewriteOnce(process, code{address, from, to}) })
	}
	if gone := process.Gone(); err != nil && gone != nil {
		err = gone
	}
	return result, errors.Join(err, ctx.Err())
}

// code is what is to be written where.
type code struct {
	address  uint64
	from, to []byte
}

// within says whether a thread that goes on at an address would find other
// instructions than it should.
func (c code) within(address uint64) bool {
	return address > c.address && address < c.address+uint64(len(c.to))
}
