// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
)

// terminal is a view on a terminal of a size that tests change.
type terminal struct {
	out           bytes.Buffer
	rows, columns int
	foreground    bool
	*Live
}

func newTerminal() *terminal {
	t := &terminal{rows: 40, columns: 100, foreground: true}
	t.Live = New(Options{
		Output:     &t.out,
		size:       func() (int, int) { return t.rows, t.columns },
		foreground: func() bool { return t.foreground },
	})
	return t
}

// shown draws once and returns what was written.
func (t *terminal) shown() string {
	t.out.Reset()
	t.draw(report.Snapshot{Mode: "tune"})
	return t.out.String()
}

const (
	taken    = "\x1b[1;34r" // 40 rows less the view's
	released = "\x1b[r"
)

func TestTheRegionIsTakenOnceAndGivenBack(t *testing.T) {
	term := newTerminal()
	if got := term.shown(); !strings.Contains(got, taken) || !strings.Contains(got, "\x1b[35;1H") {
		t.Errorf("first drawing %q", got)
	}
	if got := term.shown(); strings.Contains(got, taken) || !strings.Contains(got, "attune tune") {
		t.Errorf("second drawing %q", got)
	}
	term.out.Reset()
	term.Pause()
	if got := term.out.String(); !strings.Contains(got, released) {
		t.Errorf("pause %q", got)
	}
	if got := term.shown(); got != "" {
		t.Errorf("drawn while paused: %q", got)
	}
	term.Resume()
	if got := term.shown(); !strings.Contains(got, taken) {
		t.Errorf("after the pause %q", got)
	}
}

func TestSizeChanges(t *testing.T) {
	term := newTerminal()
	term.shown()
	term.rows = 50
	if got := term.shown(); !strings.Contains(got, released) || !strings.Contains(got, "\x1b[1;44r") {
		t.Errorf("larger: %q", got)
	}
	term.rows = small - 1
	if got := term.shown(); !strings.Contains(got, released) || strings.Contains(got, "attune") {
		t.Errorf("too small: %q", got)
	}
	if got := term.shown(); got != "" {
		t.Errorf("still too small: %q", got)
	}
}

// TestUnknownSize: a terminal whose size nobody has set says that it has no rows.
func TestUnknownSize(t *testing.T) {
	term := newTerminal()
	term.rows, term.columns = 0, 0
	if got := term.shown(); got != "" {
		t.Errorf("drawn: %q", got)
	}
}

func TestNothingIsDrawnFromTheBackground(t *testing.T) {
	term := newTerminal()
	term.foreground = false
	if got := term.shown(); got != "" {
		t.Errorf("drawn: %q", got)
	}
	term.Pause()
	if got := term.out.String(); got != "" {
		t.Errorf("pause without a drawing: %q", got)
	}
}
