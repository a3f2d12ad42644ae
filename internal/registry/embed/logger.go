// SPDX-License-Identifier: Apache-2.0

package embed

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/internal/quota"
)

// logger is what nats-server logs to. What it would end the process for goes to
// fatal instead; broken is set when it gives up a stream on disk, of which it
// tells nobody else.
type logger struct {
	log    *slog.Logger
	fatal  chan<- string
	broken *atomic.Bool
	// rate bounds the lines of each kind: whoever connects and is refused has the
	// server say one. more counts those left out.
	rate *quota.Rate[string]
	more atomic.Int64
}

// What the server says of one kind: lines at once, and one more after each sayEvery.
const (
	sayAtOnce = 20
	sayEvery  = 3 * time.Second
)

func newLogger(log *slog.Logger, fatal chan<- string, broken *atomic.Bool) *logger {
	return &logger{log: log, fatal: fatal, broken: broken, rate: quota.NewRate[string](sayAtOnce, sayEvery)}
}

// warn writes a line, unless there were too many of its kind. It then says how many
// were left out since.
func (l *logger) warn(format string, v []any) {
	if !l.rate.Take(format) {
		l.more.Add(1)
		return
	}
	log := l.log
	if more := l.more.Swap(0); more > 0 {
		log = log.With("left_out", more)
	}
	log.Warn("nats", "said", fmt.Sprintf(format, v...))
}

// Noticef tells of the normal.
func (l *logger) Noticef(format string, v ...any) {
	l.log.Debug("nats", "said", fmt.Sprintf(format, v...))
}

// Warnf tells of the odd.
func (l *logger) Warnf(format string, v ...any) {
	l.warn(format, v)
}

// Errorf tells of what went wrong: with one peer, mostly, and not with Attune.
func (l *logger) Errorf(format string, v ...any) {
	if strings.Contains(format, "critical write error") {
		l.broken.Store(true)
	}
	l.warn(format, v)
}

// Fatalf tells of what ends the server.
func (l *logger) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}

// Debugf and Tracef are not asked for.
func (l *logger) Debugf(string, ...any) {}

// Tracef see Debugf.
func (l *logger) Tracef(string, ...any) {}
