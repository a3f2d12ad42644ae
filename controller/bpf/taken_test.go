// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"testing"
	"time"
)

// TestShares: as cputime_adjust() in the kernel does it.
func TestShares(t *testing.T) {
	for _, tt := range []struct {
		name         string
		taken        Taken
		user, system time.Duration
	}{
		{name: "no tick", taken: Taken{Runtime: 700}, user: 700},
		{name: "ticks in the kernel only", taken: Taken{Runtime: 700, System: 4e6}, system: 700},
		{name: "ticks in both", taken: Taken{Runtime: 1000, User: 3e6, System: 1e6}, user: 750, system: 250},
		{name: "years", taken: Taken{Runtime: 1 << 62, User: 1 << 62, System: 1 << 62}, user: 1 << 61, system: 1 << 61},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if user, system := tt.taken.Shares(); user != tt.user || system != tt.system {
				t.Errorf("%v, %v; want %v, %v", user, system, tt.user, tt.system)
			}
		})
	}
}
