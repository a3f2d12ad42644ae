// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
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
	// dear is how long what its user asks for has taken of a processor.
	dear time.Duration
}

// examiner looks at what belongs to users: of each user at one thing after the other, in
// their order, and at that of different users at the same time, so that nobody waits for
// the memory or files of another one. Its methods may be called from any goroutine.
type examiner struct {
	ctx      context.Context // ends with the search
	examined chan examined
	group    sync.WaitGroup

	mu      sync.Mutex // guards waiting; a leaf lock
	waiting map[uint32][]examination
}

func newExaminer() *examiner {
	return &examiner{examined: make(chan examined), waiting: make(map[uint32][]examination)}
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

// work looks at what waits of a user's.
func (x *examiner) work(uid uint32) {
	for look := x.next(uid); look != nil && x.ctx.Err() == nil; look = x.next(uid) {
		found := look(x.ctx)
		select {
		case x.examined <- found:
		case <-x.ctx.Done():
			if found.candidate != nil {
				found.candidate.close()
			}
		}
		if found.dear > dearFrom { // theirs wait longer, so that others' have processors
			select {
			case <-time.After(min(dearPause*found.dear, dearMost)):
			case <-x.ctx.Done():
			}
		}
	}
}

const (
	// dearFrom is from when on the patterns of a user's registrations take so long that
	// a pause follows, dearPause times as long and dearMost at most.
	dearFrom  = 5 * time.Millisecond
	dearPause = 9
	dearMost  = 10 * time.Second
)

// examine looks whether a process goes under a name that a registration wants, and if so
// finds out what is needed of it.
func (d *describer) examine(ctx context.Context, e event, usable []*registration) examined {
	wanted := func(name string) bool { return anyWants(usable, name) }
	names, err := d.names(ctx, e, wanted)
	if !slices.ContainsFunc(names, wanted) {
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
	return examined{candidate: c, dear: c.match(usable)}
}
