// SPDX-License-Identifier: Apache-2.0

package embed

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestFloodOfStrangers: whoever is refused without end does not fill the log, nor keep
// what else the server says out of it.
func TestFloodOfStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newLogger(slog.New(slog.NewTextHandler(&out, nil)), make(chan string), new(atomic.Bool))
		for range 1000 {
			l.Errorf("TLS handshake error: %v", "EOF")
		}
		l.Warnf("disk is slow")
		time.Sleep(sayEvery)
		l.Errorf("TLS handshake error: %v", "EOF")
		for text, want := range map[string]int{"TLS handshake": sayAtOnce + 1, "disk is slow": 1, "left_out=980": 1} {
			if n := strings.Count(out.String(), text); n != want {
				t.Errorf("%d times %q, want %d", n, text, want)
			}
		}
	})
}
