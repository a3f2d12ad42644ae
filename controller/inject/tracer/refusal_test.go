// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"errors"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
)

func TestRefusals(t *testing.T) {
	for _, row := range []struct {
		name   string
		status procid.Status
		want   string
		forNow bool
	}{
		{"zombie", procid.Status{State: 'Z'}, "ended", false},
		{"traced", procid.Status{State: 'S', Tracer: 1 << 30}, "process 1073741824 traces it", true},
		{"stopped", procid.Status{State: 'T'}, "stopped", true},
		{"strict seccomp", procid.Status{State: 'S', Seccomp: 1}, "strict", false},
		{"with a shadow stack", procid.Status{State: 'S', ShadowStack: true}, "shadow", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := refusal(row.status)
			if !errors.Is(err, ErrUnsuited) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("refusal %v, want one with %q", err, row.want)
			}
			if got := errors.Is(err, ErrForNow); got != row.forNow {
				t.Errorf("for now: %v, want %v", got, row.forNow)
			}
		})
	}
	if got := refusal(procid.Status{State: 'S', Seccomp: 2}); got != nil {
		t.Errorf("refused: %v", got)
	}
}
