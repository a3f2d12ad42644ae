// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// said is what was logged; safe for use by several goroutines.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// TestStrangeRequests: an Analyzer of another version asks for what is not known here.
// It gets its answer, and people are told once.
func TestStrangeRequests(t *testing.T) {
	var log said
	b := start(t, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	for range 3 {
		b.ask(t, &attunev1.ManageResponse{RequestId: "strange"})
	}
	b.stop(t)
	if n := strings.Count(log.text.String(), "install the same version of Attune on both"); n != 1 {
		t.Errorf("told %d times: %s", n, log.text.String())
	}
}
