// SPDX-License-Identifier: Apache-2.0

package core

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/core/trial"
)

// A sample over a stop is left out if the stop is in it and is a fair part of it.
func TestSamplesOverAStop(t *testing.T) {
	for name, c := range map[string]struct {
		stopped, length time.Duration // of the sample that ends with the stop
		into            time.Duration // of the stop that the sample ends before its end
		want            bool
	}{
		"a short sample":                        {time.Second, time.Second + 50*time.Millisecond, 0, true},
		"a long sample, stopped for most of it": {time.Minute, 70 * time.Second, 0, true},
		"a long sample, a hiccup":               {time.Second, 10 * time.Second, 0, false},
		"it ended when the stop began":          {time.Second, 100 * time.Millisecond, 950 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			const from = time.Hour
			s, h := stop{from, from + c.stopped}, &trial.History{}
			at := s.to - c.into
			h.Add(at-c.length, 1)
			if got := s.skip(h, at); got != c.want || got != (h.Latest() == at) {
				t.Errorf("left out: %v, want %v; the next one begins at %v", got, c.want, h.Latest())
			}
		})
	}
}
