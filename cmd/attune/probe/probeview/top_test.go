// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"strings"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Of many keys those with the most hits are shown, and what the others have together.
func TestTop(t *testing.T) {
	for name, row := range map[string]struct {
		options Options
		want    []string
		not     string
	}{
		"some": {Options{Top: 2, Screen: true}, []string{clearScreen, "40 40 4 4.0 4 160 7 a:f arg0=4 30 30", "30 30 3 3.0 3 90 7 a:f arg0=3 30 30 1 1.7 2 50 7 a:f (2 more arg0)"}, "arg0=2"},
		"all":  {Options{}, []string{"arg0=1", "arg0=2", "arg0=3", "arg0=4"}, clearScreen},
	} {
		t.Run(name, func(t *testing.T) {
			p, out := view(row.options, "a:f sum n=arg2 by arg0")
			for key := uint64(1); key <= 4; key++ {
				p.Event(0, &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Hits{Hits: &attunev1.HandleEventsRequest{
					Aggregates: []*attunev1.NamedAggregate{{PointId: "5", Aggregate: &attunev1.Aggregate{
						Point: 3, Count: 10 * key, Sum: 10 * key * key, Min: key, Max: key, Key: &key,
					}}},
				}}})
			}
			out.Reset()
			p.Flush(false)
			text := strings.Join(strings.Fields(out.String()), " ")
			for _, want := range row.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q lacks %q", text, want)
				}
			}
			if strings.Contains(text, row.not) {
				t.Errorf("%q has %q", text, row.not)
			}
		})
	}
}

func TestPerSecond(t *testing.T) {
	for rate, want := range map[float64]string{
		0: "0", 0.5: "0.5", 674.3: "674", 999.4: "999", 999.6: "1k", 1356: "1.36k", 18223: "18.2k", 339612: "340k", 2.613e6: "2.61M", 5e12: "5000G",
	} {
		if got := perSecond(rate); got != want {
			t.Errorf("%v: %s, want %s", rate, got, want)
		}
	}
}
