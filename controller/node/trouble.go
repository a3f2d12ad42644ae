// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/turns"
)

const (
	// troubleInterval is how often the node's clock and disk are looked at.
	troubleInterval = 10 * time.Second
	// standsAfter is how long a loop of the node may take to come round: all of them
	// do so several times in that.
	standsAfter = time.Minute
	// clockJump is how far the clock may go from its course in between: what
	// adjusts it gently stays far below.
	clockJump = time.Second
)

// health looks for what a node survives and its people should know. It belongs to one
// goroutine, but for full.
type health struct {
	turns *turns.Board
	dir   string // where undo journals are written
	notes *notes
	log   *slog.Logger
	// How clock and disk were at the last look.
	offset time.Duration
	full   atomic.Bool
}

// watch looks until ctx ends.
func (h *health) watch(ctx context.Context) {
	h.offset = clockOffset()
	loop := h.turns.Begin("node's health", standsAfter, true)
	defer loop.End()
	beat.Tick(ctx, troubleInterval, func(time.Time) {
		h.clock(clockOffset())
		h.disk(writable(h.dir))
		loop.Turn()
	})
}

// clock takes the present offset of the clock.
func (h *health) clock(now time.Duration) {
	if jump := now - h.offset; jump.Abs() > clockJump {
		h.log.Warn("the clock of the node was set", "by", jump)
		h.notes.trouble(fmt.Sprintf("the clock was set by %v: times before and after differ by that", jump.Round(time.Millisecond)))
	}
	h.offset = now
}

// disk takes why nothing can be written now; nil: it can.
func (h *health) disk(err error) {
	switch {
	case err != nil && !h.full.Load():
		h.log.Error("nothing is changed any more, for no undo journal can be written", "error", err)
		h.notes.trouble("nothing is changed any more, for no undo journal can be written: " + err.Error())
	case err == nil && h.full.Load():
		h.log.Info("undo journals can be written again", "directory", h.dir)
	}
	h.full.Store(err != nil)
}

// clockOffset is what separates the time of day from the time that passes,
// suspended time included.
func clockOffset() time.Duration {
	return time.Duration(time.Now().UnixNano()) - clock.SinceBoot()
}

// writable tries whether a file in dir can be written.
func writable(dir string) error {
	path := filepath.Join(dir, ".writable")
	err := os.WriteFile(path, make([]byte, os.Getpagesize()), 0o600)
	return errors.Join(err, removed(path))
}

func removed(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
