// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/threadlocal"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Thread tells a thread from a later one of the same number.
type Thread struct {
	TID        int    `json:"tid"`
	StartTicks uint64 `json:"start_ticks"`
}

// threadNow is the thread that has this number now.
func threadNow(tid int) (*Thread, error) {
	stat, err := procid.ReadStat(tid)
	if err != nil {
		return nil, err
	}
	return &Thread{TID: tid, StartTicks: stat.StartTicks}, nil
}

// lives says whether the thread has not ended. A word of one that has is
// memory of nobody, or of another thread.
func (t *Thread) lives() bool {
	now, err := threadNow(t.TID)
	return err == nil && *now == *t
}

// copies finds those of a thread-local variable, in one thread or in all.
func (v variable) copies(process Process, set *attunev1.SetVariable) (words []Word, partial string, err error) {
	images, err := process.Images()
	if err != nil {
		return nil, "", err
	}
	block, err := threadlocal.Open(process.PID(), images, v.Image)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrRefused, err)
	}
	tids, err := threadsMeant(process.PID(), set)
	if err != nil {
		return nil, "", err
	}
	unused := 0
	for _, tid := range tids {
		word, err := v.copyOf(process, block, tid, set)
		switch {
		case err == nil:
			words = append(words, word)
		case set.GetThread() != 0:
			return nil, "", fmt.Errorf("%w: thread %d: %w", ErrRefused, tid, err)
		case errors.Is(err, threadlocal.ErrNoCopy):
			unused++
		case !errors.Is(err, procid.ErrGone):
			return nil, "", err
		}
	}
	if len(words) == 0 {
		return nil, "", fmt.Errorf("%w: no thread has used %s yet", ErrRefused, set.GetSymbol())
	}
	if set.GetThread() == 0 {
		partial = "threads that start later begin with the initial value"
	}
	if unused > 0 {
		partial += fmt.Sprintf(", so do %d that have not used it yet", unused)
	}
	return words, partial, nil
}

// threadsMeant returns the thread whose copy is meant, or all.
func threadsMeant(pid int, set *attunev1.SetVariable) ([]int, error) {
	if set.GetThread() == 0 {
		return procid.Threads(pid)
	}
	tid, err := outerThread(pid, int(set.GetThread()))
	return []int{tid}, err
}

func (v variable) copyOf(process Process, block *threadlocal.Block, tid int, set *attunev1.SetVariable) (Word, error) {
	thread, err := threadNow(tid)
	if err != nil {
		return Word{}, err
	}
	address, err := block.Address(tid, v.Symbol.Value)
	if err != nil {
		return Word{}, err
	}
	name := fmt.Sprintf("%s of thread %d", set.GetSymbol(), tid)
	word, err := wordAt(process, v.Image, address, name, v.size, set.GetValue())
	word.Thread = thread
	return word, err
}

// outerThread is the controller's number for a thread that the process knows by
// its own, in its pid namespace.
func outerThread(pid, inner int) (int, error) {
	tids, err := procid.Threads(pid)
	if err != nil {
		return 0, err
	}
	for _, tid := range tids {
		if own, err := procid.InnerID(pid, tid); err == nil && own == inner {
			return tid, nil
		}
	}
	return 0, fmt.Errorf("%w: the process has no thread %d", ErrRefused, inner)
}

// writeCopies writes all words, and counts those whose thread has ended.
func writeCopies(process Process, words []Word) (missed int, err error) {
	for i, word := range words {
		if word.Thread != nil && i > 0 && !word.Thread.lives() {
			missed++
			continue
		}
		if err := writeWord(process, word); err != nil {
			return missed, err
		}
	}
	return missed, nil
}
