// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"strconv"
)

// listener is a log that notes when the controller has placed its point in a
// process: it says so at that moment, before anybody else hears of it.
type listener struct{ *node }

func (n *node) listen() slog.Handler { return listener{n} }

// Enabled implements slog.Handler.
func (listener) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (l listener) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "measure point placed" {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "pid" {
			if pid, err := strconv.Atoi(a.Value.String()); err == nil {
				l.note(l.placed, pid)
			}
		}
		return true
	})
	return nil
}

// WithAttrs implements slog.Handler.
func (l listener) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l listener) WithGroup(string) slog.Handler { return l }
