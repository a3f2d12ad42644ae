// SPDX-License-Identifier: Apache-2.0

//go:build e2e || vm

package e2e

import (
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

func TestLineWriterIsTuned(t *testing.T) {
	tuneUntil(t, judged("stdio", 1), nil, targets.Build(t, workloads+"line_writer.c"), lasting)
}

func TestBufferedWriterIsLeftAlone(t *testing.T) {
	writer := targets.Build(t, workloads+"line_writer.c")
	if r := runTuned(t, nil, writer, "3", "full"); keptIn(r, "stdio") != 0 {
		t.Errorf("changes %+v; want none of a stream that is buffered", r.Changes)
	}
}
