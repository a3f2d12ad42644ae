// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/track"
)

// Ways to learn of processes, as [Status] names them.
const (
	// ModeWatch is by events of the kernel: no process is too short-lived.
	ModeWatch = "watch"
	// ModePoll is by looking through /proc.
	ModePoll = "poll"
)

// event is one of the node's.
type event struct {
	track.Event
	// tagged says that the stream knows who is a member of which view, and view
	// which one that is; 0: of none.
	tagged bool
	view   uint32
}

// followed is what a stream is asked for, from any goroutine.
type followed interface {
	// follow asks for the events of a process and what it forks from now on, as
	// of this view.
	follow(pid int, view uint32) error
	unfollow(pid int) error
	// refused is how many children of a view's processes are not followed, because its user
	// has too many.
	refused(view uint32) uint64
	// account accounts for a process, and what comes of it, where the kernel does that.
	account(pid int) error
	// want says which names matter; a stream may tell of others as well.
	want(names []procevent.Name) error
}

// stream is one way to learn what the processes of the node do.
type stream interface {
	followed
	// mode is ModeWatch or ModePoll.
	mode() string
	// run tells of events until ctx ends (nil) or the stream fails.
	run(ctx context.Context, handle func(event)) error
	lost() uint64
	close() error
}

// passive is for a stream that tells of all processes, whatever is asked of it, and for
// want of one.
type passive struct{}

func (passive) follow(int, uint32) error { return nil }

func (passive) unfollow(int) error { return nil }

func (passive) refused(uint32) uint64 { return 0 }

func (passive) account(int) error { return nil }

func (passive) want([]procevent.Name) error { return nil }

// current is the stream of the day, if there is one. The mutex of the hub guards it.
type current struct {
	followed        // the stream; passive without one
	stream   stream // nil: none
	mode     string // of this or the last one; "" before the first
	reason   string // why not by the best way
	before   uint64 // events that earlier streams have lost
}

// use makes a stream the current one.
func (c *current) use(s stream, reason string) {
	if c.mode != "" { // what happened since the last one is lost
		c.before++
	}
	c.followed, c.stream, c.mode, c.reason = s, s, s.mode(), reason
}

// leave is the end of a stream.
func (c *current) leave(s stream) {
	c.before += s.lost()
	c.followed, c.stream = passive{}, nil
}

// lost returns how many events all streams have lost.
func (c *current) lost() uint64 {
	if c.stream == nil {
		return c.before
	}
	return c.before + c.stream.lost()
}
