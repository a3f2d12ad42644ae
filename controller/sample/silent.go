// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"errors"
	"time"
)

// errSilent means that what belongs to a program does not answer.
var errSilent = errors.New("it does not answer")

// attempts is a place for one goroutine that reads what belongs to programs.
type attempts struct {
	taken    chan struct{}
	patience time.Duration
}

func newAttempts(patience time.Duration) attempts { return attempts{make(chan struct{}, 1), patience} }

// longer is for what is read once, and takes some milliseconds of CPU time.
func (a attempts) longer() attempts { return attempts{a.taken, 10 * a.patience} }

// read has a function read something, and waits for a while. [errSilent] if it takes longer,
// or an earlier one does still: there is no more than one goroutine that hangs.
func read[T any](a attempts, do func() (T, error)) (value T, err error) {
	select {
	case a.taken <- struct{}{}:
	default:
		return value, errSilent
	}
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		value, err := do()
		<-a.taken
		answered <- answer{value, err}
	}()
	timer := time.NewTimer(a.patience)
	defer timer.Stop()
	select {
	case got := <-answered:
		return got.value, got.err
	case <-timer.C:
		return value, errSilent
	}
}
