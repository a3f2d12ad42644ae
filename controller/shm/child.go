// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// Nurse finds the forked child that asks whether it may register, by the id that the
// C library of the process knows it by. free says why the child must not make system
// calls now, nil if it may: the child waits meanwhile, for less than a millisecond.
type Nurse func(child int) (free func() error)

const (
	// childPatience is how long a child that asks has time to come to a hook again.
	childPatience = 50 * time.Millisecond
	// childPoll is between two looks at whether it has: the child waits for a
	// few of them.
	childPoll = 100 * time.Microsecond
	// childRest is how many times as long as one child took the next one is not
	// attended to: any program can ask all the time.
	childRest = 10
)

// Children answers forked children. Its methods may be called at any time by several
// goroutines.
type Children struct {
	*mapping
	guarded func() error // the Executor's
	nurse   Nurse

	mu    sync.Mutex // held while a child is attended to
	after time.Time  // when the next one may be; guarded by mu
}

// SetNurse says who looks at forked children that ask whether they may register.
// Without one they ask in vain. It is called before any AttendChild.
func (c *Children) SetNurse(n Nurse) { c.nurse = n }

// childWord is the header's word by which a child and the controller speak.
type childWord uint64

func childSays(state uint32, child int) childWord {
	return childWord(uint64(uint32(child))<<32 | uint64(state))
}

func (w childWord) state() uint32 { return uint32(w) }
func (w childWord) child() int    { return int(int32(w >> 32)) }

// ChildAsks says whether AttendChild has something to do.
func (c *Children) ChildAsks() bool {
	word, _ := c.childWord()
	return word != 0 && c.nurse != nil
}

// Beat is called some times a second, before a look at whether a child asks: children ask
// once they have lived for some beats, and take the controller for dead where none comes.
// They may not read a clock.
func (c *Children) Beat() {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.data != nil {
		atomic.AddUint32(u32(c.data, abi.HeaderBeatAt), 1)
	}
}

// AttendChild attends to the forked child that asks, until it has been answered or does
// not come to a hook again. The error says why it must not register. One call at a time
// does something: the answer to a child that has stopped waiting must not reach it when
// it asks again. All calls together take at most a tenth of the time.
func (c *Children) AttendChild(ctx context.Context) error {
	if c.nurse == nil || !c.mu.TryLock() {
		return nil
	}
	defer c.mu.Unlock()
	begun := time.Now()
	if begun.Before(c.after) {
		return nil
	}
	defer func() { c.after = time.Now().Add(childRest * time.Since(begun)) }()
	asks, _ := c.childWord()
	if asks.state() != abi.ChildAsks {
		c.answerChild(asks, 0) // nobody attends to it, or it has not fetched its answer
		return nil
	}
	free := c.nurse(asks.child())
	attended, waits := childSays(abi.ChildAttended, asks.child()), childSays(abi.ChildWaits, asks.child())
	if !c.answerChild(asks, attended) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, childPatience)
	defer cancel()
	poll := time.NewTicker(childPoll)
	defer poll.Stop()
	for {
		switch word, open := c.childWord(); {
		case !open || word != attended && word != waits:
			return nil // it has stopped waiting
		case word == waits:
			return c.judgeChild(waits, free)
		}
		select {
		case <-ctx.Done():
			c.answerChild(attended, 0)
			return nil
		case <-poll.C:
		}
	}
}

// judgeChild answers a child that waits.
func (c *Children) judgeChild(waits childWord, free func() error) error {
	err := c.guarded()
	if err == nil {
		err = free()
	}
	answer := childSays(abi.ChildMay, waits.child())
	if err != nil {
		answer = childSays(abi.ChildMayNot, waits.child())
	}
	if !c.answerChild(waits, answer) {
		return nil
	}
	return err
}

// childWord reads the word; false after Close.
func (c *Children) childWord() (word childWord, open bool) {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.data == nil {
		return 0, false
	}
	return childWord(load64(c.data, abi.HeaderChildAt)), true
}

// answerChild replaces the word if the child has not.
func (c *Children) answerChild(last, next childWord) bool {
	c.life.RLock()
	defer c.life.RUnlock()
	return c.data != nil && cas64(c.data, abi.HeaderChildAt, uint64(last), uint64(next))
}
