// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/queue"
)

const (
	// defaultMaxBytes is how large a file grows.
	defaultMaxBytes = 64 << 20
	// defaultKeep is how many files are kept beside the one that grows.
	defaultKeep = 20
	// maxPending bounds the lines that wait for the disk or are on their way to
	// it, bytes.
	maxPending = 4 << 20
	// retry is how often a disk that takes nothing is asked again.
	retry = time.Second
	// closing bounds how long Close waits for the disk.
	closing = 5 * time.Second
)

// Options configure a Log.
type Options struct {
	// Path of the file. Its directory must exist.
	Path string
	// maxBytes is how large the file grows before it is renamed to
	// PATH.TIME; 0: 64 MiB.
	maxBytes int64
	// keep is how many of those are kept; of an older one the log says that it
	// was deleted. 0: 20.
	keep int
	// Log is told of trouble with the file, on change. May be nil.
	Log *slog.Logger
}

// Log is an audit log. Its methods may be called from any goroutine.
type Log struct {
	options Options
	log     *slog.Logger
	done    chan struct{} // closed when the writing goroutine has returned
	wake    queue.Bell    // rung when there is something to do

	mu sync.Mutex // guards what follows; a leaf lock
	// pending are whole lines. They are bytes, not the items of a queue.Queue: all go to
	// the disk in one write, which may take a part of them, and those that are away count
	// against the bound too.
	pending []byte
	away    int    // of those before, on their way to the disk, bytes
	number  uint64 // of the last line
	durable uint64 // number of the last line that is on disk, or given up
	lost    uint64 // lines since the last that says so
	missing uint64 // lines in all
	calls   calls
	trouble error         // why lines are not on disk
	moved   chan struct{} // closed and replaced when durable or trouble changes
	closed  bool
}

// Open opens the file, or makes it, readable by its owner only, and writes that
// the service has started. A full disk is no error, here as later: a service that did
// not start because of it would not be there when there is room again. The caller calls
// Close.
func Open(o Options) (*Log, error) {
	o.maxBytes = cmp.Or(o.maxBytes, defaultMaxBytes)
	o.keep = cmp.Or(o.keep, defaultKeep)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	l := &Log{
		options: o, log: o.Log.With("component", "audit"),
		done: make(chan struct{}), wake: queue.NewBell(), moved: make(chan struct{}), calls: newCalls(),
	}
	w := &writer{path: o.Path}
	switch err := w.open(); {
	case full(err):
		l.report(0, err)
	case err != nil:
		return nil, fmt.Errorf("audit log: %w", err)
	}
	l.Write(Entry{Event: Started})
	go l.run(w)
	return l, nil
}

// Write appends a line, without waiting for the disk, and returns its number. 0:
// it is lost, and counted.
func (l *Log) Write(e Entry) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0
	}
	return l.write(e)
}

// write is Write with the lock held, of the last line too.
func (l *Log) write(e Entry) uint64 {
	number := l.tryWrite(e)
	if number == 0 {
		l.lost++
		l.missing++
	}
	return number
}

// tryWrite is write of a line that is kept and written later if there is no place for it
// now: 0, and nothing is counted as lost.
func (l *Log) tryWrite(e Entry) uint64 {
	e.Number = l.number + 1
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC()
	if e.Event == Asked && e.Call == 0 {
		e.Call = e.Number
	}
	line, err := e.line()
	if err != nil || l.away+len(l.pending)+len(line) > maxPending {
		return 0
	}
	l.number = e.Number
	l.pending = append(l.pending, line...)
	l.wake.Ring()
	return e.Number
}

// tellLost writes how many lines are missing, when lines can be written. The
// lock is held.
func (l *Log) tellLost() {
	if l.lost > 0 && l.trouble == nil && l.tryWrite(Entry{Event: Lost, Count: l.lost}) != 0 {
		l.lost = 0
	}
}

// Sync waits until all that was written is on disk, or ctx ends. While the disk
// takes nothing it does not wait but says why.
func (l *Log) Sync(ctx context.Context) error {
	l.mu.Lock()
	want := l.number
	l.mu.Unlock()
	for {
		moved, done, err := l.synced(want)
		if done {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// synced says whether a line is on disk, or why none gets there; else moved is
// closed when that may have changed.
func (l *Log) synced(number uint64) (moved <-chan struct{}, done bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.moved, l.durable >= number || l.trouble != nil, l.trouble
}

// Trouble says why lines are not on disk, nil if they are.
func (l *Log) Trouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trouble
}

// LostLines counts the lines that were lost since the start, because the disk took none.
func (l *Log) LostLines() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.missing
}

// Close writes the last line and closes the file. The error says what could not
// be written. Later lines are ignored.
func (l *Log) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.calls.flush(l.write) // what finds no place now is lost
		l.tellLost()
		l.write(Entry{Event: Ended})
		l.closed = true
	}
	l.mu.Unlock()
	l.wake.Ring()
	timer := time.NewTimer(closing)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
		return errors.New("audit log: the disk does not answer")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trouble != nil {
		return fmt.Errorf("audit log: %d lines are lost: %w", l.lost+l.number-l.durable, l.trouble)
	}
	return nil
}

// report notes what became of lines: up to number they are on disk, unless err.
// Changes of err are logged.
func (l *Log) report(number uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil && (l.trouble == nil || l.trouble.Error() != err.Error()):
		l.log.Error("audit log cannot be written, lines wait and then are lost", "error", err)
	case err == nil && l.trouble != nil:
		l.log.Info("audit log is written again", "lost", l.lost)
	}
	l.trouble = err
	if err == nil {
		l.durable = max(l.durable, number)
	}
	close(l.moved)
	l.moved = make(chan struct{})
}

// Lines takes the lines of a log of decisions, each written at once and JSON, as
// Decided. What they are about is what. Write does not wait for the disk.
func (l *Log) Lines(what string) io.Writer { return lines{l, what} }

type lines struct {
	log  *Log
	what string
}

func (w lines) Write(line []byte) (int, error) {
	e := Entry{Event: Decided, What: w.what}
	if json.Valid(line) {
		e.Message = bytes.Clone(bytes.TrimSpace(line))
	} else {
		e.Error = string(line)
	}
	w.log.Write(e)
	return len(line), nil
}
