// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/follow"
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
	// maxLabel bounds a line that is a label, readAtOnce what is read of a file at a time, and readInALook
	// what is read of it in one look, bytes: of more the end is read.
	maxLabel, readAtOnce, readInALook = 200, 1 << 16, 4 << 20
	// watcherPatience is how long the last look is waited for: a file system may never answer.
	watcherPatience = 2 * time.Second
)

// errSilent says why something could not be looked at.
var errSilent = errors.New("it does not answer, as where the server of a file system does not")

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
				for i := range watched {
					watched[i].close()
				}
				return
			}
			beat.Pause(ctx, every)
		}
	}()
	return w
}

// await waits for the last look.
func (w *watcher) await() error {
	select {
	case <-w.stopped:
		return nil
	case <-time.After(watcherPatience):
		return errSilent
	}
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
	there bool         // it was there at the last look
	file  *follow.File // of an event that is a line; nil: it is none at present
	lines follow.Splitter
}

// begin passes over what is there already.
func (w *watched) begin() {
	if w.event.Line != nil {
		w.file, _ = follow.Path(w.event.Path) // what is no file has no lines
		w.lines.Most = readAtOnce
		return
	}
	_, err := os.Stat(w.event.Path)
	w.there = err == nil
}

// look tells of events since the last look.
func (w *watched) look(tell func(string)) {
	if w.event.Line != nil {
		w.read(tell)
		return
	}
	_, err := os.Stat(w.event.Path)
	if err == nil && !w.there {
		tell(w.event.Path)
	}
	w.there = err == nil
}

// read tells of the lines that are complete by now.
func (w *watched) read(tell func(string)) {
	if w.file == nil {
		w.begin() // perhaps it is a file by now
		return
	}
	for more := true; more; {
		news, err := w.file.Look()
		if err != nil {
			return // it is no file at present
		}
		w.readNews(news, tell)
		more = news.More
	}
}

func (w *watched) readNews(news follow.News, tell func(string)) {
	if news.Anew {
		w.lines.Reset()
	}
	if beyond := news.Left - readInALook; beyond > 0 { // a length of terabytes costs nothing to write
		w.file.Skip(beyond)
		w.lines.Reset()
		news.Left = readInALook
	}
	part := make([]byte, min(readAtOnce, news.Left))
	for left := news.Left; left > 0; {
		n, err := w.file.Read(part[:min(left, readAtOnce)])
		if err != nil || n == 0 {
			return
		}
		left -= int64(n)
		w.lines.Split(part[:n], func(line []byte) {
			if w.event.Line.Match(line) {
				tell(strings.ToValidUTF8(string(line[:min(len(line), maxLabel)]), "\uFFFD"))
			}
		})
	}
}

// close closes the file.
func (w *watched) close() {
	if w.file != nil {
		w.file.Close()
	}
}
