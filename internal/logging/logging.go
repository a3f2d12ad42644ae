// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/attune-hpc/attune/internal/outfile"
)

// Options say where the log goes.
type Options struct {
	// File gets every record at or above Level; empty: no file.
	File string
	// Level is the lowest level written to File.
	Level slog.Level
	// Collect gets warnings and errors; nil: nowhere.
	Collect *Collector
}

// Open builds the logger; the file is opened as [outfile.Open] does, without
// waiting. The returned function closes it; call it after the last record.
func Open(o Options) (*slog.Logger, func() error, error) {
	var handlers []slog.Handler
	if o.Collect != nil {
		handlers = append(handlers, o.Collect)
	}
	done := func() error { return nil }
	if o.File != "" {
		f, err := outfile.Open(o.File, os.O_CREATE|os.O_APPEND)
		if err != nil {
			return nil, nil, fmt.Errorf("open log file: %w", err)
		}
		handlers = append(handlers, slog.NewTextHandler(f, &slog.HandlerOptions{Level: o.Level}))
		done = f.Close
	}
	return slog.New(slog.NewMultiHandler(handlers...)), done, nil
}

// ParseLevel turns debug, info, warn or error into a level.
func ParseLevel(name string) (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return 0, fmt.Errorf("log level %q is none of debug, info, warn, error", name)
	}
	return level, nil
}
