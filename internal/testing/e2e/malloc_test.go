// SPDX-License-Identifier: Apache-2.0

//go:build e2e || vm

package e2e

import (
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

func TestMallocStormIsTuned(t *testing.T) {
	tuneUntil(t, kept("malloc", 1), nil, targets.Build(t, workloads+"malloc_storm.c"), lasting)
}
