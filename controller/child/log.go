// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
)

var _ slog.Handler = (*lines)(nil)

// lines is a slog.Handler that has attuned log. Its methods may be called from any
// goroutine.
type lines struct {
	*conversation

	debug  *atomic.Bool // what is for debugging is wanted, too
	values []value
	group  string // what names begin with
}

// Enabled implements slog.Handler.
func (l *lines) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || l.debug.Load()
}

// Handle implements slog.Handler.
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	values := slices.Clone(l.values)
	r.Attrs(func(a slog.Attr) bool {
		values = append(values, l.valueOf(a))
		return true
	})
	return l.tell(logged, line{Level: int(r.Level), Message: r.Message, Values: values})
}

func (l *lines) valueOf(a slog.Attr) value {
	return value{l.group + a.Key, a.Value.Resolve().String()}
}

// WithAttrs implements slog.Handler.
func (l *lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *l
	more.values = slices.Clone(l.values)
	for _, a := range attrs {
		more.values = append(more.values, l.valueOf(a))
	}
	return &more
}

// WithGroup implements slog.Handler.
func (l *lines) WithGroup(name string) slog.Handler {
	more := *l
	more.group += name + "."
	return &more
}
