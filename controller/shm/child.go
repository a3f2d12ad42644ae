// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"context"
	"sync"
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

// nursing is what a Memory has for forked children.
type nursing struct {
	nurse Nurse
	mu    sync.Mutex // held while a child is attended to
	after time.Time  // when the next one may be; guarded by mu
}

// SetNurse says who looks at forked children that ask whether they may register.
// Without one they ask in vain. It is called before any AttendChild.
func (m *Memory) SetNurse(n Nurse) { m.nursing.nurse = n }

// childWord is the header's word by which a child and the controller speak.
type childWord uint64

func childSays(state uint32, child int) childWord {
	return childWord(uint64(uint32(child))<<32 | uint64(state))
}

func (w childWord) state() uint32 { return uint32(w) }
func (w childWord) child() int    { return int(int32(w >> 32)) }

// ChildAsks says whether AttendChild has something to do.
func (m *Memory) ChildAsks() bool {
	word, _ := m.childWord()
	return word != 0 && m.nursing.nurse != nil
}

// AttendChild attends to the forked child that asks, until it has been answered or does
// not come to a hook again. The error says why it must not register. One call at a time
// does something: the answer to a child that has stopped waiting must not reach it when
// it asks again. All calls together take at most a tenth of the time.
func (m *Memory) AttendChild(ctx context.Context) error {
	if m.nursing.nurse == nil || !m.nursing.mu.TryLock() {
		return nil
	}
	defer m.nursing.mu.Unlock()
	begun := time.Now()
	if begun.Before(m.nursing.after) {
		return nil
	}
	defer func() { m.nursing.after = time.Now().Add(childRest * time.Since(begun)) }()
	asks, _ := m.childWord()
	if asks.state() != abi.ChildAsks {
		m.answerChild(asks, 0) // nobody attends to it, or it has not fetched its answer
		return nil
	}
	free := m.nursing.nurse(asks.child())
	attended, waits := childSays(abi.ChildAttended, asks.child()), childSays(abi.ChildWaits, asks.child())
	if !m.answerChild(asks, attended) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, childPatience)
	defer cancel()
	poll := time.NewTicker(childPoll)
	defer poll.Stop()
	for {
		switch word, open := m.childWord(); {
		case !open || word != attended && word != waits:
			return nil // it has stopped waiting
		case word == waits:
			return m.judgeChild(waits, free)
		}
		select {
		case <-ctx.Done():
			m.answerChild(attended, 0)
			return nil
		case <-poll.C:
		}
	}
}

// judgeChild answers a child that waits.
func (m *Memory) judgeChild(waits childWord, free func() error) error {
	err := m.guarded()
	if err == nil {
		err = free()
	}
	answer := childSays(abi.ChildMay, waits.child())
	if err != nil {
		answer = childSays(abi.ChildMayNot, waits.child())
	}
	if !m.answerChild(waits, answer) {
		return nil
	}
	return err
}

// childWord reads the word; false after Close.
func (m *Memory) childWord() (word childWord, open bool) {
	m.life.RLock()
	defer m.life.RUnlock()
	if m.data == nil {
		return 0, false
	}
	return childWord(load64(m.data, abi.HeaderChildAt)), true
}

// answerChild replaces the word if the child has not.
func (m *Memory) answerChild(last, next childWord) bool {
	m.life.RLock()
	defer m.life.RUnlock()
	return m.data != nil && cas64(m.data, abi.HeaderChildAt, uint64(last), uint64(next))
}
