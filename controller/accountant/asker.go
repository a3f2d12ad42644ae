// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"runtime"
	"time"

	"github.com/attune-hpc/attune/internal/clock"
)

// askedShare is what part of the time an asker may spend with its questions, as a divisor.
const askedShare = 20

// asker has questions answered beside the sampler, one at a time and as seldom as its
// share of the time needs: the kernel takes long for them, and nobody may wait for it who
// has limits to see to.
type asker[Q any] struct {
	questions chan Q
	answered  chan struct{} // closed when the last question was answered
}

// newAsker calls answer in a thread of its own, until end. So many questions may wait.
func newAsker[Q any](waiting int, answer func(Q)) asker[Q] {
	a := asker[Q]{questions: make(chan Q, waiting), answered: make(chan struct{})}
	go a.run(answer)
	return a
}

func (a asker[Q]) run(answer func(Q)) {
	defer close(a.answered)
	runtime.LockOSThread() // for its CPU time
	defer runtime.UnlockOSThread()
	var again time.Time
	for q := range a.questions {
		begun, worked := time.Now(), clock.Thread()
		if begun.Before(again) {
			continue
		}
		answer(q)
		again = begun.Add(askedShare * (clock.Thread() - worked))
	}
}

// ask asks, unless there is no room for another question.
func (a asker[Q]) ask(q Q) {
	select {
	case a.questions <- q:
	default:
	}
}

// end returns when the last question is answered.
func (a asker[Q]) end() {
	close(a.questions)
	<-a.answered
}
