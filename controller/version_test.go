// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/lockedtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestStrangeRequests: an Analyzer of another version asks for what is not known here.
// It gets its answer, and people are told once.
func TestStrangeRequests(t *testing.T) {
	var log lockedtext.Text
	b := start(t, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	for range 3 {
		b.ask(t, &attunev1.ManageResponse{RequestId: "strange"})
	}
	b.stop(t)
	if n := strings.Count(log.String(), "install the same version of Attune on both"); n != 1 {
		t.Errorf("told %d times: %s", n, log.String())
	}
}
