// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/passing"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/internal/readers"
)

// examinationsQueued bounds the processes and paths of one user that wait to be looked at.
const examinationsQueued = 16384

// examination is a look at something of a user's, which may take as long as the user
// likes.
type examination func(context.Context) examined

// examined is what a look has found out.
type examined struct {
	round     int        // of looks that are waited for; 0: nobody waits
	candidate *candidate // a process that may be meant
	failed    error      // why nothing is known of a process that may be meant
	uid       uint32     // whose that is
	missed    bool       // it had ended before
	// target is what the path of of names in the end.
	of     *registration
	target string
}

// examiner looks at what belongs to users: of each user at one thing after the other, in
// their order, and at that of different users at the same time, so that nobody waits for
// the memory or files of another one. Its methods may be called from any goroutine.
type examiner struct {
	ctx      context.Context // ends with the search
	examined chan examined
	group    sync.WaitGroup
	share    *quota.Share[uint32]
	clock    func() time.Duration // of the thread that looks

	mu      sync.Mutex // guards waiting; a leaf lock
	waiting map[uint32][]examination
}

func newExaminer() *examiner {
	return &examiner{
		examined: make(chan examined), waiting: make(map[uint32][]examination),
		share: quota.NewShare[uint32](shareOfUser, burstOfUser), clock: clock.Thread,
	}
}

// put has something of a user's looked at; false if too much of theirs waits.
func (x *examiner) put(uid uint32, look examination) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	queue, busy := x.waiting[uid]
	if len(queue) >= examinationsQueued {
		return false
	}
	x.waiting[uid] = append(queue, look)
	if !busy {
		x.group.Go(func() { x.work(uid) })
	}
	return true
}

// next takes what waits first of a user's.
func (x *examiner) next(uid uint32) examination {
	x.mu.Lock()
	defer x.mu.Unlock()
	queue := x.waiting[uid]
	if len(queue) == 0 {
		delete(x.waiting, uid)
		return nil
	}
	x.waiting[uid] = queue[1:]
	return queue[0]
}

const (
	// shareOfUser is the part of a processor that looks at what belongs to one user may
	// take, and burstOfUser what they may take at once: some thousand processes. Who
	// executes programs without end, or has patterns that take long, has theirs found
	// later, and others have the processors.
	shareOfUser = 50
	burstOfUser = time.Second
)

// work looks at what waits of a user's. Its thread is its own, and has a clock.
func (x *examiner) work(uid uint32) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for look := x.next(uid); look != nil && x.ctx.Err() == nil; look = x.next(uid) {
		began := x.clock()
		found := look(x.ctx)
		spent := x.clock() - began
		select {
		case x.examined <- found:
		case <-x.ctx.Done():
			if found.candidate != nil {
				found.candidate.close()
			}
		}
		if pause := x.share.Spend(uid, spent); pause > 0 && uid != 0 {
			beat.Pause(x.ctx, pause)
		}
	}
}

// examine looks whether a process goes under a name that a registration wants, and if so
// finds out what is needed of it.
func (d *describer) examine(ctx context.Context, e event, usable []*registration) examined {
	wanted := func(name string) bool { return anyWants(usable, name) }
	names, err := d.names(ctx, e, wanted)
	if !slices.ContainsFunc(names, wanted) {
		if passing.Error(err) {
			return examined{failed: fmt.Errorf("process %d cannot be looked at: %w", e.PID, err), uid: userOf(e)}
		}
		// Of one that has ended nothing tells what it was.
		return examined{missed: len(names) == 0 && e.Kind == track.Exec && !errors.Is(err, readers.ErrRefused)}
	}
	c, err := d.describe(ctx, e, names)
	switch {
	case errors.Is(err, procid.ErrGone):
		return examined{missed: true}
	case err != nil:
		return examined{failed: fmt.Errorf("process %d cannot be described: %w", e.PID, err), uid: userOf(e)}
	}
	c.match(usable)
	return examined{candidate: c}
}
