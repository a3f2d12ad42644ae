// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/quota"
)

const (
	// linesAtOnce and linesPerSecond bound what a session's process may have logged.
	linesAtOnce    = 500
	linesPerSecond = 50
	// maxLine bounds a line, and each of its values.
	maxLine   = 4 << 10
	maxValues = 32
)

// echo logs what a session's process wants logged. It belongs to one goroutine.
type echo struct {
	log     *slog.Logger
	lines   *quota.Rate[struct{}]
	dropped uint64
}

func newEcho(log *slog.Logger) *echo {
	return &echo{log: log, lines: quota.NewRate[struct{}](linesAtOnce, time.Second/linesPerSecond)}
}

// handle takes messages of a process that is to do nothing but log.
func (e *echo) handle(m message, _ *os.File) error {
	if m.Kind != logged {
		return fmt.Errorf("%w: %q is not for it", errWire, m.Kind)
	}
	return e.write(m)
}

// write logs a line, or counts it if there are too many.
func (e *echo) write(m message) error {
	l, err := decode[line](m)
	if err != nil {
		return err
	}
	if !e.lines.Take(struct{}{}) {
		e.dropped++
		return nil
	}
	if e.dropped > 0 {
		e.log.Warn("lines of this session's log were dropped", "lines", e.dropped)
		e.dropped = 0
	}
	attrs := make([]slog.Attr, 0, len(l.Values))
	for _, v := range l.Values[:min(len(l.Values), maxValues)] {
		attrs = append(attrs, slog.String(clean(v.Name), clean(v.Value)))
	}
	level := min(max(slog.Level(l.Level), slog.LevelDebug), slog.LevelError)
	e.log.LogAttrs(context.Background(), level, clean(l.Message), attrs...) //nolint:sloglint // it is the process' own
	return nil
}

// clean bounds a text.
func clean(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxLine)], "?") }
