// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"fmt"
	"os"
	"time"
)

// Schedstat is what the scheduler has counted of a thread, nanoseconds: Run of a
// processor, Wait for one.
type Schedstat struct{ Run, Wait uint64 }

// ParseSchedstat parses the content of a schedstat file, "run wait timeslices".
func ParseSchedstat(data []byte) (Schedstat, error) {
	word, rest := nextWord(data)
	run, ran := parseUint(word)
	word, _ = nextWord(rest)
	wait, waited := parseUint(word)
	if !ran || !waited {
		return Schedstat{}, fmt.Errorf("%w: schedstat %q", ErrMalformed, data)
	}
	return Schedstat{run, wait}, nil
}

// Queue is how the threads of a process that live stand with the scheduler.
type Queue struct {
	// Runnable says whether one of them runs or waits for a processor.
	Runnable bool
	// Waited is how long they have waited for one in all.
	Waited time.Duration
}

// ReadQueue reads it. [ErrGone] if the process has ended.
func ReadQueue(pid int) (q Queue, err error) {
	threads, err := Threads(pid)
	if err != nil {
		return q, err
	}
	for _, tid := range threads {
		folder := fmt.Sprintf("/proc/%d/task/%d/", pid, tid)
		text, err := os.ReadFile(folder + "stat")
		if err != nil {
			continue // it has ended
		}
		state, err := ParseState(text)
		q.Runnable = q.Runnable || err == nil && state == 'R'
		if text, err = os.ReadFile(folder + "schedstat"); err != nil {
			continue
		}
		if s, err := ParseSchedstat(text); err == nil {
			q.Waited += time.Duration(s.Wait)
		}
	}
	return q, nil
}
