// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/hits"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A graph has what was summed up where there is something, and says what is missing.
func TestGraph(t *testing.T) {
	sums := map[hits.Key]*hits.Sum{
		{Has: true, Kind: hits.KeyStack, Text: "p:main\np:f"}: {Count: 2, Total: 3e6},
		{}: {Count: 5, Total: 7, Unreadable: 1},
	}
	timed := &attunev1.MeasurePoint{Place: attunev1.Place_PLACE_BOTH}
	for value, want := range map[string]string{"": "2 hits", "time": "3ms"} {
		g := graph("t", value, timed, sums)
		if len(g.Stacks) != 1 || g.All() != want || !strings.Contains(g.Missing, "no room") || !strings.Contains(g.Missing, "1 hits could not be read") {
			t.Errorf("%q: %+v, all %s", value, g, g.All())
		}
	}
}
