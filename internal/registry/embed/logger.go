// SPDX-License-Identifier: Apache-2.0

package embed

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
)

// logger is what nats-server logs to. What it would end the process for goes to
// fatal instead; broken is set when it gives up a stream on disk, of which it
// tells nobody else.
type logger struct {
	log    *slog.Logger
	fatal  chan<- string
	broken *atomic.Bool
}

// Noticef tells of the normal.
func (l *logger) Noticef(format string, v ...any) {
	l.log.Debug("nats", "said", fmt.Sprintf(format, v...))
}

// Warnf tells of the odd.
func (l *logger) Warnf(format string, v ...any) {
	l.log.Warn("nats", "said", fmt.Sprintf(format, v...))
}

// Errorf tells of what went wrong: with one peer, mostly, and not with Attune.
func (l *logger) Errorf(format string, v ...any) {
	if strings.Contains(format, "critical write error") {
		l.broken.Store(true)
	}
	l.log.Warn("nats", "said", fmt.Sprintf(format, v...))
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
