// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// troubleInterval is how often the node's clock and disk are looked at.
	troubleInterval = 10 * time.Second
	// clockJump is how far the clock may go from its course in between: what
	// adjusts it gently stays far below.
	clockJump = time.Second
)

// watchTroubles looks for what a node survives and its people should know.
func (n *Node) watchTroubles(ctx context.Context) {
	tick := time.NewTicker(troubleInterval)
	defer tick.Stop()
	h := health{node: n, offset: clockOffset()}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			h.clock(clockOffset())
			h.disk(writable(n.config.StateDir))
		}
	}
}

// health is how clock and disk were at the last look.
type health struct {
	node   *Node
	offset time.Duration
	full   bool
}

// clock takes the present offset of the clock.
func (h *health) clock(now time.Duration) {
	if jump := now - h.offset; jump.Abs() > clockJump {
		h.node.log.Warn("the clock of the node was set", "by", jump)
		h.node.notes.trouble(fmt.Sprintf("the clock was set by %v: times before and after differ by that", jump.Round(time.Millisecond)))
	}
	h.offset = now
}

// disk takes why nothing can be written now; nil: it can.
func (h *health) disk(err error) {
	switch {
	case err != nil && !h.full:
		h.node.log.Error("nothing is changed any more, for no undo journal can be written", "error", err)
		h.node.notes.trouble("nothing is changed any more, for no undo journal can be written: " + err.Error())
	case err == nil && h.full:
		h.node.log.Info("undo journals can be written again", "directory", h.node.config.StateDir)
	}
	h.full = err != nil
}

// clockOffset is what separates the time of day from the time that passes,
// suspended time included.
func clockOffset() time.Duration {
	var day, passed unix.Timespec
	// Neither fails for these clocks.
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &day)
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &passed)
	return time.Duration(day.Nano() - passed.Nano())
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
