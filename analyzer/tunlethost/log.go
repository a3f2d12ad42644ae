// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"sync"

	hclog "github.com/hashicorp/go-hclog"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// plugin is the logger that go-plugin is given.
func (l *limitedLog) plugin() hclog.Logger {
	to := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	to.RegisterSink(l)
	return to
}

// Accept takes what go-plugin logs. What a tunlet writes to its standard error comes,
// with its own level, through a logger that go-plugin names after the binary; all else
// is go-plugin talking of itself, and for debugging only: the supervisor reports what
// matters.
func (l *limitedLog) Accept(name string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	if strings.HasPrefix(name, sdk.ProgramPrefix) || name == sdk.PackageProgram {
		switch level {
		case hclog.Info:
			to = slog.LevelInfo
		case hclog.Warn, hclog.Error:
			to = slog.LevelWarn // a tunlet's error is the host's degraded state
		}
	}
	l.write(to, msg, args...)
}

// lineLogger logs what is written to it, for debugging.
type lineLogger struct{ log *limitedLog }

func (w *lineLogger) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		w.log.write(slog.LevelDebug, string(bytes.TrimSpace(line)))
	}
	return len(p), nil
}

// tailSize bounds what is kept of a tunlet's standard error.
const tailSize = 2048

// tail keeps the last lines of a tunlet's standard error, for the reason of its
// end. Safe for use by several goroutines.
type tail struct {
	mu  sync.Mutex // leaf lock
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// line returns the line that says most: of a panic its first line, otherwise
// the last one.
func (t *tail) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := ""
	for line := range bytes.Lines(t.buf) {
		text := string(bytes.TrimSpace(line))
		if bytes.Contains(line, []byte("panic:")) || bytes.Contains(line, []byte("fatal error:")) {
			return text
		}
		if text != "" {
			last = text
		}
	}
	return last
}

// all returns what was written, in one line.
func (t *tail) all() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ReplaceAll(string(bytes.TrimSpace(t.buf)), "\n", "; ")
}
