// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/queue"
)

// timelineQueue bounds the entries that wait for a slow writer.
const timelineQueue = 4096

// Entry is one line of the timeline and of the audit log.
type Entry struct {
	// Time is when it happened.
	Time time.Time `json:"time"`
	// Seconds is the same since the session's start.
	Seconds float64 `json:"seconds"`
	// Kind is what happened: session_started, controller, process_started,
	// process_ended, tunlet, point, proposed, applying, applied, turning, turned, judged,
	// kept, undoing, undone, failed, refused, advised, ended, restored, left,
	// remark, session_ended.
	Kind string `json:"kind"`
	// Tunlet is whose it is.
	Tunlet string `json:"tunlet,omitempty"`
	// Proposal is the tunlet's id of it.
	Proposal string `json:"proposal,omitempty"`
	// Process is a process id.
	Process int `json:"process,omitempty"`
	// Point is the tunlet's name of a measure point.
	Point string `json:"point,omitempty"`
	// Text says it in a sentence: a reason, a path, a state.
	Text string `json:"text,omitempty"`
	// Changes are the proposal's changes as they stand.
	Changes []EntryChange `json:"changes,omitempty"`
	// Objective is the comparison behind a decision.
	Objective *Objective `json:"objective,omitempty"`
}

// EntryChange is one change in an Entry.
type EntryChange struct {
	// ID is its id in the session.
	ID string `json:"id"`
	// Process is the process id.
	Process int `json:"process"`
	// Knob is what is changed.
	Knob string `json:"knob"`
	// Action is how.
	Action string `json:"action"`
	// Old is the value before, null if it is unknown.
	Old Value `json:"old"`
	// New is the value read back, or else the one asked for.
	New Value `json:"new"`
	// Outcome is applied, refused, failed, undone, gone or overridden; empty: not
	// yet.
	Outcome string `json:"outcome,omitempty"`
	// SafePoint is where it was executed.
	SafePoint string `json:"safe_point,omitempty"`
}

// Timeline writes entries as JSON lines, each as one write when it happens. It
// never blocks its callers: what a slow writer cannot take is dropped and
// counted, and the first error ends the writing.
type Timeline struct {
	w     io.Writer
	queue *queue.Queue[Entry]
	done  chan struct{}

	mu   sync.Mutex // guards what follows; a leaf lock
	lost uint64     // of what was in the queue
	err  error
}

// NewTimeline returns a timeline on w, which it does not close. A nil w gives a
// timeline that drops everything and counts nothing.
func NewTimeline(w io.Writer) *Timeline {
	t := &Timeline{w: w, queue: queue.New[Entry](timelineQueue), done: make(chan struct{})}
	if w == nil {
		close(t.done)
		return t
	}
	go t.run()
	return t
}

// Write queues an entry. After Close it does nothing.
func (t *Timeline) Write(e Entry) {
	if t.w != nil && !t.queue.Closed() {
		t.queue.Offer(e)
	}
}

// Close writes what is queued and returns how many entries were dropped, and
// the first error. It waits for the writer at most for the given time: a pipe that
// nobody reads must not hold the program.
func (t *Timeline) Close(patience time.Duration) (dropped uint64, err error) {
	t.queue.Close()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-t.done:
	case <-timer.C:
		t.lose(uint64(len(t.queue.Drain())), nil)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost + t.queue.Dropped(), t.err
}

// run writes until Close.
func (t *Timeline) run() {
	defer close(t.done)
	failed := false
	for e, err := t.queue.Take(context.Background()); err == nil; e, err = t.queue.Take(context.Background()) {
		if failed {
			t.lose(1, nil)
		} else if err := t.line(e); err != nil {
			failed = true
			t.lose(1, err)
		}
	}
}

// lose counts entries that were queued and are not written.
func (t *Timeline) lose(entries uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost += entries
	if t.err == nil {
		t.err = err
	}
}

// line writes one entry.
func (t *Timeline) line(e Entry) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = t.w.Write(append(data, '\n'))
	return err
}
