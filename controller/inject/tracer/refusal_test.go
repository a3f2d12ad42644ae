// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
)

func TestRefusals(t *testing.T) {
	for _, row := range []struct {
		name   string
		status procid.Status
		want   string
	}{
		{"zombie", procid.Status{State: 'Z'}, "ended"},
		{"traced", procid.Status{State: 'S', Tracer: 1 << 30}, "process 1073741824 traces it"},
		{"stopped", procid.Status{State: 'T'}, "stopped"},
		{"strict seccomp", procid.Status{State: 'S', Seccomp: 1}, "strict"},
		{"with a shadow stack", procid.Status{State: 'S', ShadowStack: true}, "shadow"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := refusal(row.status); !strings.Contains(got, row.want) {
				t.Errorf("refusal %q, want one with %q", got, row.want)
			}
		})
	}
	if got := refusal(procid.Status{State: 'S', Seccomp: 2}); got != "" {
		t.Errorf("refused: %s", got)
	}
}
