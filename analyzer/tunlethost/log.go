// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"bytes"
	"io"
	"log"
	"log/slog"
	"strings"
	"sync"

	hclog "github.com/hashicorp/go-hclog"
)

// logAdapter makes a slog logger serve go-plugin. What a tunlet writes to its
// standard error comes, with its own level, through a logger that go-plugin names
// after the binary; all else is go-plugin talking of itself, and for debugging
// only: the supervisor reports what matters.
type logAdapter struct {
	log     *limitedLog
	name    string
	implied []any
}

var _ hclog.Logger = (*logAdapter)(nil)

// Log writes one message.
func (l *logAdapter) Log(level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	if strings.HasPrefix(l.name, Prefix) || l.name == Package {
		switch level {
		case hclog.Info:
			to = slog.LevelInfo
		case hclog.Warn, hclog.Error:
			to = slog.LevelWarn // a tunlet's error is the host's degraded state
		}
	}
	l.log.write(to, msg, append(l.implied[:len(l.implied):len(l.implied)], args...)...)
}

// Trace logs for debugging.
func (l *logAdapter) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }

// Debug logs for debugging.
func (l *logAdapter) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }

// Info logs information.
func (l *logAdapter) Info(msg string, args ...any) { l.Log(hclog.Info, msg, args...) }

// Warn logs a degraded state.
func (l *logAdapter) Warn(msg string, args ...any) { l.Log(hclog.Warn, msg, args...) }

// Error logs an error.
func (l *logAdapter) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

// IsTrace reports whether tracing is of use.
func (l *logAdapter) IsTrace() bool { return l.log.enabled(slog.LevelDebug) }

// IsDebug reports whether debugging is of use.
func (l *logAdapter) IsDebug() bool { return l.log.enabled(slog.LevelDebug) }

// IsInfo reports whether information is of use.
func (l *logAdapter) IsInfo() bool { return l.log.enabled(slog.LevelInfo) }

// IsWarn reports whether warnings are of use.
func (l *logAdapter) IsWarn() bool { return l.log.enabled(slog.LevelWarn) }

// IsError reports whether errors are of use.
func (l *logAdapter) IsError() bool { return l.log.enabled(slog.LevelError) }

// ImpliedArgs returns what With added.
func (l *logAdapter) ImpliedArgs() []any { return l.implied }

// With returns a logger that adds args to each message.
func (l *logAdapter) With(args ...any) hclog.Logger {
	return &logAdapter{log: l.log, name: l.name, implied: append(l.implied[:len(l.implied):len(l.implied)], args...)}
}

// Name returns the logger's name.
func (l *logAdapter) Name() string { return l.name }

// Named returns a logger of that name.
func (l *logAdapter) Named(name string) hclog.Logger { return l.ResetNamed(name) }

// ResetNamed returns a logger of that name.
func (l *logAdapter) ResetNamed(name string) hclog.Logger {
	return &logAdapter{log: l.log, name: name, implied: l.implied}
}

// SetLevel does nothing: slog's handler has the level.
func (l *logAdapter) SetLevel(hclog.Level) {}

// GetLevel returns the least level that is of use.
func (l *logAdapter) GetLevel() hclog.Level {
	switch {
	case l.IsDebug():
		return hclog.Trace
	case l.IsInfo():
		return hclog.Info
	}
	return hclog.Warn
}

// StandardLogger returns a logger for debugging messages.
func (l *logAdapter) StandardLogger(opts *hclog.StandardLoggerOptions) *log.Logger {
	return log.New(l.StandardWriter(opts), "", 0)
}

// StandardWriter returns a writer for debugging messages.
func (l *logAdapter) StandardWriter(*hclog.StandardLoggerOptions) io.Writer {
	return &lineLogger{log: l.log}
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
