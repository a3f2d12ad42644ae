// SPDX-License-Identifier: Apache-2.0

package account

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/quantity"
)

const (
	// rewriteEvery is how often the line on a terminal is rewritten, lineEvery how often
	// a line is written elsewhere.
	rewriteEvery, lineEvery = 500 * time.Millisecond, 10 * time.Second
)

// watch shows a person what there is while the command runs: one line that is rewritten
// on a terminal, lines elsewhere. Whoever does not read them delays nothing.
type watch struct {
	to       io.Writer
	terminal bool
	rows     chan account.Row
	stopped  chan struct{}
}

func newWatch(to io.Writer, terminal bool) *watch {
	w := &watch{to: to, terminal: terminal, rows: make(chan account.Row, 1), stopped: make(chan struct{})}
	every := lineEvery
	if terminal {
		every = rewriteEvery
	}
	go w.run(every)
	return w
}

// put shows a row, unless one is being shown. It returns at once.
func (w *watch) put(row account.Row) {
	select {
	case w.rows <- row:
	default:
	}
}

// run shows the first row that comes after each period.
func (w *watch) run(every time.Duration) {
	defer close(w.stopped)
	shown := 0.0
	for row := range w.rows {
		if row.Seconds-shown < every.Seconds() {
			continue
		}
		shown = row.Seconds
		text := progress(row)
		if w.terminal {
			text = eraseLine + text + "\r" // what the command writes next stands at the line's beginning
		} else {
			text += "\n"
		}
		_, _ = io.WriteString(w.to, text) // nobody else to tell
	}
	if w.terminal && shown > 0 {
		_, _ = io.WriteString(w.to, eraseLine)
	}
}

// eraseLine goes to the beginning of a line of a terminal and clears it.
const eraseLine = "\r\x1b[K"

// end ends what is shown. It does not wait longer than that for whoever does not read it.
func (w *watch) end(most time.Duration) {
	close(w.rows)
	select {
	case <-w.stopped:
	case <-time.After(most):
	}
}

// progress is a row for a person.
func progress(r account.Row) string {
	var out strings.Builder
	fmt.Fprintf(&out, "attune: %s", clock(r.Seconds))
	if r.Cores != nil {
		fmt.Fprintf(&out, "  %.2f cores", *r.Cores)
	}
	fmt.Fprintf(&out, "  CPU %s  %s  memory %s  read %s  written %s", clock(r.CPUSeconds), quantity.Count(r.Processes, "process", "processes"),
		quantity.Bytes(float64(r.Resident)), quantity.Bytes(float64(r.Read)), quantity.Bytes(float64(r.Written)))
	return out.String()
}

// clock is a time as 3.2 s, 12:05 or 1:02:03.
func clock(seconds float64) string {
	if seconds < 60 {
		return fmt.Sprintf("%.1f s", seconds)
	}
	d := int(seconds)
	if d < 3600 {
		return fmt.Sprintf("%d:%02d", d/60, d%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", d/3600, d/60%60, d%60)
}
