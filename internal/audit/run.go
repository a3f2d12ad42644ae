// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"os"
	"time"
)

// run writes lines until Close.
func (l *Log) run(w *writer) {
	defer close(l.done)
	timer := time.NewTicker(retry)
	defer timer.Stop()
	for {
		select {
		case <-l.wake:
			if l.waits() {
				continue
			}
		case <-timer.C:
		}
		lines, number, last := l.take()
		if len(lines) > 0 || l.Trouble() != nil {
			left, err := w.append(lines)
			l.giveBack(left)
			if err == nil {
				err = l.turn(w)
			}
			l.report(number, err)
		}
		if last && (l.empty() || l.Trouble() != nil) {
			if err := w.close(); err != nil {
				l.report(0, err)
			}
			return
		}
	}
}

// take returns the lines that wait, with one about those that were lost since,
// the number of the last, and whether Close was called.
func (l *Log) take() (lines []byte, number uint64, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed { // nothing comes after the last line
		l.calls.pass(l)
	}
	lines, l.pending = l.pending, nil
	l.tellLost() // there is room now
	lines, l.pending = append(lines, l.pending...), nil
	l.away = len(lines)
	return lines, l.number, l.closed
}

// giveBack takes note that lines are not on their way any more, and puts those
// that could not be written before those that have come since.
func (l *Log) giveBack(lines []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = 0
	if len(lines) > 0 {
		l.pending = append(lines[:len(lines):len(lines)], l.pending...)
	}
}

// waits says whether the disk takes nothing, so that it is not asked for each
// line again.
func (l *Log) waits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trouble != nil && !l.closed
}

func (l *Log) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending) == 0
}

// turn goes on in a new file when the present one is large enough, and deletes
// the oldest if there are too many. Both are told in the new one.
func (l *Log) turn(w *writer) error {
	if w.size < l.options.maxBytes {
		return nil
	}
	name, err := w.rotate(time.Now())
	if errors.Is(err, os.ErrExist) {
		return w.open() // in this very millisecond: with the next lines
	}
	if err != nil {
		return err
	}
	l.Write(Entry{Event: Rotated, What: name})
	old, err := w.old()
	if err != nil {
		return err
	}
	for _, name := range old[:max(0, len(old)-l.options.keep)] {
		if err := os.Remove(name); err != nil {
			return err
		}
		l.Write(Entry{Event: Dropped, What: name})
	}
	return nil
}
