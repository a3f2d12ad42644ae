// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// collected is how many different lines are kept: a report with more notes
// than this would not be read.
const collected = 64

// Collector is a slog.Handler that keeps warnings and errors as short lines,
// each once. The zero value is ready.
type Collector struct {
	prefix string     // attributes of With, rendered
	shared *collector // nil in the zero value until first used
	own    collector
}

type collector struct {
	mu      sync.Mutex // guards the rest
	lines   []string
	seen    map[string]bool
	dropped int
}

func (c *Collector) state() *collector {
	if c.shared != nil {
		return c.shared
	}
	return &c.own
}

// Enabled keeps warnings and errors.
func (c *Collector) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

// Handle keeps the record's message and attributes.
func (c *Collector) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	b.WriteString(c.prefix)
	r.Attrs(func(a slog.Attr) bool {
		appendAttr(&b, a)
		return true
	})
	c.state().add(b.String())
	return nil
}

// WithAttrs returns a handler that adds attrs and keeps into the same list.
func (c *Collector) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	b.WriteString(c.prefix)
	for _, a := range attrs {
		appendAttr(&b, a)
	}
	return &Collector{prefix: b.String(), shared: c.state()}
}

// WithGroup returns the same handler: notes need no name spaces.
func (c *Collector) WithGroup(string) slog.Handler { return c }

// Lines returns what was kept, oldest first, and says so if more came.
func (c *Collector) Lines() []string {
	s := c.state()
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := append([]string(nil), s.lines...)
	if s.dropped > 0 {
		lines = append(lines, fmt.Sprintf("%d more warnings are only in the log file", s.dropped))
	}
	return lines
}

func (s *collector) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.seen[line]:
	case len(s.lines) >= collected:
		s.dropped++
	default:
		if s.seen == nil {
			s.seen = map[string]bool{}
		}
		s.seen[line] = true
		s.lines = append(s.lines, line)
	}
}

// appendAttr writes one attribute: causes as in a sentence, and the component
// not at all, which is for log files.
func appendAttr(b *strings.Builder, a slog.Attr) {
	switch a.Key {
	case "component":
	case "error", "reason":
		fmt.Fprintf(b, ": %v", a.Value.Resolve())
	default:
		fmt.Fprintf(b, " %s=%v", a.Key, a.Value.Resolve())
	}
}
