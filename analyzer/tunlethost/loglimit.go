// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"log/slog"
	"sync"
	"time"
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
