// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	"github.com/attune-hpc/attune/internal/procid"
)

// controllerPatience is how long a packed program's controller may take to end
// after it.
const controllerPatience = 10 * time.Second

// packedCost is what a packed program costs more than the plain one.
type packedCost struct {
	// PlainMS and PackedMS are times to main, measured in turns.
	PlainMS  []float64 `json:"plain_ms"`
	PackedMS []float64 `json:"packed_ms"`
	// AddedMB is how much larger the file is.
	AddedMB float64 `json:"added_mb"`
}

// measure packs the probe and starts both in turns, after one round that warms
// the file cache.
func (c *packedCost) measure(ctx context.Context, attune tuned.Attune, probe string, repeats int) error {
	file := filepath.Join(attune.Scratch, "packed")
	if text, err := exec.CommandContext(ctx, attune.Binary, "pack", probe, "-o", file, "--quiet").CombinedOutput(); err != nil {
		return fmt.Errorf("pack: %w: %s", err, text)
	}
	if err := c.size(probe, file); err != nil {
		return err
	}
	for i := range repeats + 1 {
		plain, err := timeToMain(ctx, []string{probe})
		if err != nil {
			return err
		}
		packed, err := timeToMain(ctx, []string{file})
		if err != nil {
			return err
		}
		if err := awaitNoController(ctx); err != nil {
			return err
		}
		if i > 0 {
			c.PlainMS, c.PackedMS = append(c.PlainMS, plain), append(c.PackedMS, packed)
		}
	}
	return nil
}

func (c *packedCost) size(plain, packed string) error {
	before, err := os.Stat(plain)
	if err != nil {
		return err
	}
	after, err := os.Stat(packed)
	if err != nil {
		return err
	}
	c.AddedMB = float64(after.Size()-before.Size()) / 1e6
	return nil
}

// awaitNoController lets the controller of a packed program end, so that it is
// not measured with the next.
func awaitNoController(ctx context.Context) error {
	return measure.Await(ctx, controllerPatience, "end of a packed program's controller", func() bool {
		pids, err := procid.List()
		return err == nil && !anyStartsWith(pids, "attune\x00packed\x00")
	})
}

func anyStartsWith(pids []int, prefix string) bool {
	return slices.ContainsFunc(pids, func(pid int) bool {
		line, err := procid.ReadFile(pid, "cmdline", len(prefix))
		return err == nil && string(line) == prefix
	})
}

// more is the median of the differences of pairs, milliseconds.
func (c *packedCost) more() float64 {
	return measure.Median(measure.Differences(c.PackedMS, c.PlainMS))
}

func (c *packedCost) goal() present.Goal {
	return present.Goal{Name: "packed program: time to main, more than plain", Value: present.Figure(c.more()), Unit: "ms", Limit: 50}
}

func (c *packedCost) print() {
	fmt.Printf("packed: %s ms more to main (median of %d pairs); the file is %s MB larger\n",
		present.Number(c.more()), len(c.PlainMS), present.Number(c.AddedMB))
}
