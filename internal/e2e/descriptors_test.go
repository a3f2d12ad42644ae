// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"

	"github.com/attune-hpc/attune/internal/targets"
)

// Programs that are held up by a socket as they made it: it is changed from
// outside, while they use it. What a pipe gains is too little for a busy machine.
func TestDescriptorsAreTuned(t *testing.T) {
	for _, tt := range []struct {
		tunlet, source string
		options        []string
		least          float64 // times more
	}{
		{"nagle", "tcp_requests.c", nil, 10},
		{"sockbuf", "tcp_stream.c", []string{"16384"}, 1.2},
	} {
		t.Run(tt.tunlet, func(t *testing.T) {
			program := targets.Build(t, workloads+tt.source)
			mustBeTuned(t, func() string {
				before := rate(t, run(t, append([]string{program, "2"}, tt.options...)...))
				stdout, r := runTuned(t, nil, append([]string{program, "20"}, tt.options...)...)
				return unlessGained(r, tt.tunlet, 1, before, rate(t, stdout), tt.least)
			})
		})
	}
}
