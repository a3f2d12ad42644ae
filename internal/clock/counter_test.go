// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"errors"
	"testing"

	"github.com/attune-hpc/attune/internal/clock"
)

func TestJudgeCounter(t *testing.T) {
	const good = "processor\t: 0\nflags\t\t: fpu constant_tsc nonstop_tsc sse\nbugs\t:\n"
	tests := []struct {
		name, source, cpuinfo string
		want                  error
	}{
		{"trusted", "tsc\n", good, nil},
		{"virtual clock", "kvm-clock\n", good, clock.ErrUntrusted},
		{"other speed when idle", "tsc\n", "flags : nonstop_tsc\n", clock.ErrUneven},
		{"stops when idle", "tsc\n", "flags : constant_tsc\n", clock.ErrUneven},
		{"no source", "", good, clock.ErrUntrusted},
		{"unreadable", "", "", clock.ErrUneven},
		{"both", "hpet\n", "flags : constant_tsc\n", clock.ErrUneven},
		{"both", "hpet\n", "flags : constant_tsc\n", clock.ErrUntrusted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := clock.JudgeCounter(tt.source, tt.cpuinfo); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}
