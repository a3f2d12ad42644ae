// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"io"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/launch"
)

// period is how often the view is drawn.
const period = 250 * time.Millisecond

// Options say what is shown where.
type Options struct {
	// Output is the terminal.
	Output io.Writer
	// size returns the terminal's rows and columns; nil: those of standard
	// error.
	size func() (rows, columns int)
	// foreground tells whether the terminal is ours to draw on; nil: whether
	// this process group owns it.
	foreground func() bool
	// Snapshot returns what is to be shown.
	Snapshot func() report.Snapshot
}

// Live is a view at the bottom of a terminal.
type Live struct {
	opts Options
	view view

	mu     sync.Mutex // guards what follows
	screen screen
	paused bool
}

// New returns a view that is not on the screen yet.
func New(opts Options) *Live {
	if opts.size == nil {
		opts.size = func() (int, int) {
			columns, rows, err := term.GetSize(2)
			if err != nil {
				return 0, 0
			}
			return rows, columns
		}
	}
	if opts.foreground == nil {
		opts.foreground = launch.Foreground
	}
	return &Live{opts: opts}
}

// Run draws until ctx ends, and then gives the lines back.
func (l *Live) Run(ctx context.Context) {
	defer l.Pause()
	beat.Tick(ctx, period, func(time.Time) { l.draw(l.opts.Snapshot()) })
}

// draw shows one snapshot, unless the view is paused.
func (l *Live) draw(s report.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused || !l.opts.foreground() {
		return
	}
	rows, columns := l.opts.size()
	if l.screen.resize(rows, columns) {
		l.screen.draw(l.view.lines(s, columns))
	}
	l.flush()
}

// Pause gives the lines back: the program has stopped or ended, and the
// terminal is somebody else's.
func (l *Live) Pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = true
	l.screen.release()
	l.flush()
}

// Resume draws again.
func (l *Live) Resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = false
}

// flush writes what was composed. A terminal that is gone needs no view.
func (l *Live) flush() {
	if l.screen.out.Len() > 0 {
		_, _ = l.opts.Output.Write(l.screen.out.Bytes())
		l.screen.out.Reset()
	}
}
