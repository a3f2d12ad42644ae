// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	hclog "github.com/hashicorp/go-hclog"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// logLines is how many lines of one tunlet are logged in one second: enough for
// whoever looks for its fault, and too few to fill a disk in a long job.
const logLines = 20

// limitedLog logs what one tunlet says, over all of its processes, without
// letting it flood the log: of the lines beyond logLines there is only their
// number. Safe for use by several goroutines.
type limitedLog struct {
	log *slog.Logger
	now func() time.Time

	mu       sync.Mutex // leaf lock; guards what follows
	from     time.Time  // when the second began that is counted
	lines    int        // logged in it
	withheld int        // since a line was logged
}

func newLimitedLog(log *slog.Logger) *limitedLog { return &limitedLog{log: log, now: time.Now} }

// write logs a line if there is room for it, and before it how many were not.
func (l *limitedLog) write(level slog.Level, msg string, args ...any) {
	if !l.log.Enabled(context.Background(), level) || !l.room() {
		return
	}
	l.flush()
	l.log.Log(context.Background(), level, msg, args...)
}

// room takes the place of one line, or counts it as withheld.
func (l *limitedLog) room() bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.from) >= time.Second {
		l.from, l.lines = now, 0
	}
	if l.lines >= logLines {
		l.withheld++
		return false
	}
	l.lines++
	return true
}

// flush logs how many lines were withheld that nobody was told of.
func (l *limitedLog) flush() {
	l.mu.Lock()
	withheld := l.withheld
	l.withheld = 0
	l.mu.Unlock()
	if withheld > 0 {
		l.log.Warn("tunlet says too much; some of its lines were not logged", "lines", withheld)
	}
}

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

// maxLine bounds what is kept of a line whose end has not come.
const maxLine = 16 << 10

// leveledLogger logs what a tunlet writes to its standard error while it serves, each line
// with its own level, as go-plugin does with what comes before: a tunlet in Go has a stream
// over the connection for its standard error. It belongs to the goroutine that copies.
type leveledLogger struct {
	to   hclog.Logger
	rest []byte // of a line whose end has not come
}

// Write implements io.Writer.
func (w *leveledLogger) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	left := w.rest
	for {
		line, rest, whole := bytes.Cut(left, []byte("\n"))
		if !whole && len(line) <= maxLine {
			w.rest = append(w.rest[:0], line...)
			return len(p), nil
		}
		level, message, args := leveled(line)
		w.to.Log(level, message, args...)
		left = rest
	}
}

// leveled takes a line apart: hclog's JSON, as [sdk.Logger] writes it, or text that begins with
// its level in brackets. Any other line is for debugging.
func leveled(line []byte) (level hclog.Level, message string, args []any) {
	var fields map[string]any
	if bytes.HasPrefix(line, []byte("{")) && json.Unmarshal(line, &fields) == nil {
		if message, ok := fields["@message"].(string); ok {
			word, _ := fields["@level"].(string)
			for _, key := range slices.Sorted(maps.Keys(fields)) {
				if !strings.HasPrefix(key, "@") {
					args = append(args, key, fields[key])
				}
			}
			return hclog.LevelFromString(word), message, args
		}
	}
	message = string(bytes.TrimSpace(line))
	if word, rest, ok := strings.Cut(message, "]"); ok && strings.HasPrefix(word, "[") {
		if level := hclog.LevelFromString(word[1:]); level != hclog.NoLevel {
			return level, strings.TrimSpace(rest), nil
		}
	}
	return hclog.Debug, message, nil
}
