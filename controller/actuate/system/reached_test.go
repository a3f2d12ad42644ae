// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// A limit at which a program is killed is not put back where the program has passed it: it
// could only because the limit was raised.
func TestPassedLimitStays(t *testing.T) {
	tests := []struct {
		knob     string
		resource int
		old      uint64
		pass     func(*testing.T, *keeper)
		final    bool // it will never be below again
	}{
		{"limit.cpu", unix.RLIMIT_CPU, 1, func(t *testing.T, k *keeper) {
			k.Ask(t, "pump")
			patience.Until(t, "a second of CPU time", func() bool {
				used, err := procid.CPUTime(k.PID)
				return err == nil && used > time.Second
			})
		}, true},
		{"limit.fsize", unix.RLIMIT_FSIZE, 1000, func(t *testing.T, k *keeper) { k.Ask(t, "file 2000") }, false},
	}
	for _, test := range tests {
		t.Run(test.knob, func(t *testing.T) {
			k := mustKeeper(t)
			limit := unix.Rlimit{Cur: test.old, Max: unix.RLIM_INFINITY}
			if err := unix.Prlimit(k.PID, test.resource, &limit, nil); err != nil {
				t.Fatal(err)
			}
			_, states := k.change(t, test.knob, "1T", Everywhere)
			test.pass(t, k)
			err := Restore(k.identity, states)
			if last := new(access.Final); err == nil || errors.As(err, last) != test.final {
				t.Errorf("restored with %v", err)
			}
			if err := unix.Prlimit(k.PID, test.resource, nil, &limit); err != nil || limit.Cur != 1<<40 {
				t.Errorf("the limit is %d, %v", limit.Cur, err)
			}
		})
	}
}
