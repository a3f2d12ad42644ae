// SPDX-License-Identifier: Apache-2.0

//go:build e2e || vm

package e2e

import (
	"testing"

	"github.com/attune-hpc/attune/internal/targets"
)

func TestLineWriterIsTuned(t *testing.T) {
	writer := targets.Build(t, workloads+"line_writer.c")
	seconds, least := "20", 1.5
	if testing.Short() { // an emulated processor: turns last long, and half of them are without
		seconds, least = "40", 0
	}
	mustBeTuned(t, func() string {
		before := rate(t, run(t, writer, "2"))
		stdout, r := runTuned(t, nil, writer, seconds)
		return unlessGained(r, "stdio", 1, before, rate(t, stdout), least)
	})
}

func TestBufferedWriterIsLeftAlone(t *testing.T) {
	writer := targets.Build(t, workloads+"line_writer.c")
	if _, r := runTuned(t, nil, writer, "3", "full"); keptIn(r, "stdio") != 0 {
		t.Errorf("changes %+v; want none of a stream that is buffered", r.Changes)
	}
}
