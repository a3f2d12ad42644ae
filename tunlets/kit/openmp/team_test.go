// SPDX-License-Identifier: Apache-2.0

package openmp

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

func TestLoadNeedsSignals(t *testing.T) {
	team := NewTeam(1, Runtime{})
	team.Window.Add(sdk.Sample{At: time.Unix(1, 0)}.With(sdk.RunTime, 0))
	team.Window.Add(sdk.Sample{At: time.Unix(2, 0)}.With(sdk.RunTime, 1e9))
	if _, ok := team.Load(); ok {
		t.Error("a load without the other signals")
	}
}
