// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// enterAndLeave is one whole visit.
func (b *bench) enterAndLeave(t *testing.T, pid int) {
	t.Helper()
	result := b.inject(t, pid)
	GiveBack(t.Context(), result.Memory, nil)
	free(t, result)
}

// Every program for a hard case is entered and left again and again, and goes
// on as it should each time.
func TestHardPrograms(t *testing.T) {
	for name, row := range map[string]struct {
		visits int
		among  bool // only threads beside the main one, which waits in read
	}{
		"many":    {3, true},
		"churn":   {20, true},
		"alarms":  {20, true},
		"handler": {5, true},
		"small":   {10, true},
		"loads":   {10, true},
		"spawns":  {10, true},
		"watches": {10, false},
		"faults":  {20, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			h := targets.StartProgram(t, name)
			if row.among {
				b.options.among = notMain(h)
			}
			for range targets.Fewer(row.visits) {
				b.enterAndLeave(t, h.PID)
				h.Right(t)
			}
			h.Finish(t)
		})
	}
}
