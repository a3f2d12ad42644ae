// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Event is what a snapshot is taken at: a file that appears, or a line that is written to it.
type Event struct {
	// Path is the file's.
	Path string
	// Line, if not nil, is what a line must match; each line that does is an event.
	Line *regexp.Regexp
}

// ParseEvent reads PATH, for a file that appears, or PATH:REGEXP, for its lines.
func ParseEvent(text string) (Event, error) {
	path, expression, lines := strings.Cut(text, ":")
	if path == "" {
		return Event{}, fmt.Errorf("%q names no file", text)
	}
	e := Event{Path: path}
	if !lines {
		return e, nil
	}
	var err error
	e.Line, err = regexp.Compile(expression)
	return e, err
}

const (
	// maxSnapshots bounds what an account has of them.
	maxSnapshots = 1000
	// maxLabel bounds a line that is a label, readAtOnce what is read of a file at a time, bytes.
	maxLabel, readAtOnce = 200, 1 << 16
)

// watcher looks for events beside the sampler: a file system may take its time.
type watcher struct {
	labels  chan string
	stopped chan struct{}
}

// startingWith is what there is before the command runs: none of it is an event.
func startingWith(events []Event) []watched {
	list := make([]watched, len(events))
	for i, e := range events {
		list[i].event = e
		list[i].begin()
	}
	return list
}

// watch looks for events until ctx ends.
func watch(ctx context.Context, watched []watched, every time.Duration) *watcher {
	w := &watcher{labels: make(chan string, maxSnapshots), stopped: make(chan struct{})}
	go func() {
		defer close(w.stopped)
		for {
			last := ctx.Err() != nil // what came at the end is seen as well
			for i := range watched {
				watched[i].look(w.put)
			}
			if last {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(every):
			}
		}
	}()
	return w
}

func (w *watcher) put(label string) {
	select {
	case w.labels <- label:
	default: // more than an account has
	}
}

// watched is an event's file.
type watched struct {
	event Event
	there bool  // it was there at the last look
	at    int64 // how far it was read
}

// begin passes over what is there already.
func (w *watched) begin() {
	if info, err := os.Stat(w.event.Path); err == nil {
		w.there, w.at = true, info.Size()
	}
}

// look tells of events since the last look.
func (w *watched) look(tell func(string)) {
	info, err := os.Stat(w.event.Path)
	if err != nil {
		w.there, w.at = false, 0
		return
	}
	if !w.there && w.event.Line == nil {
		tell(w.event.Path)
	}
	w.there = true
	if w.event.Line == nil || !info.Mode().IsRegular() {
		return
	}
	if info.Size() < w.at {
		w.at = 0 // it was cut, or is another one
	}
	for info.Size() > w.at && w.read(tell) {
	}
}

// read tells of whole lines of the next part of the file. False if there is none.
func (w *watched) read(tell func(string)) bool {
	file, err := os.OpenFile(w.event.Path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	part := make([]byte, readAtOnce)
	n, err := file.ReadAt(part, w.at)
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	end := bytes.LastIndexByte(part[:n], '\n') + 1
	if end == 0 && n == len(part) {
		end = n // a line without an end is no label
	}
	for line := range bytes.Lines(part[:end]) {
		if text := bytes.TrimRight(line, "\r\n"); w.event.Line.Match(text) {
			tell(strings.ToValidUTF8(string(text[:min(len(text), maxLabel)]), "\uFFFD"))
		}
	}
	w.at += int64(end)
	return end > 0
}
