// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"fmt"
	"testing"
	"time"
)

// The whole is the sum of its parts, of each once; a part that has gone is forgotten.
func TestWhole(t *testing.T) {
	type step struct {
		at    time.Duration
		parts map[string]float64
		want  string // values of the whole
	}
	for name, tt := range map[string]struct {
		mean  bool
		steps []step
	}{
		"one part": {false, []step{{1, map[string]float64{"a": 3}, "3@1"}, {2, map[string]float64{"a": 4}, "4@2"}}},
		"two nodes": {false, []step{
			{1, map[string]float64{"a": 3}, "3@1"}, {1, map[string]float64{"b": 5}, ""}, {2, map[string]float64{"a": 4}, "9@2"},
			{2, map[string]float64{"b": 6}, ""}, {3, map[string]float64{"b": 7}, "10@2"}, {3, map[string]float64{"a": 1}, "8@3"},
		}},
		"a mean": {true, []step{{1, map[string]float64{"a": 3, "b": 5}, "4@1"}}},
		"one that goes": {false, []step{
			{1, map[string]float64{"a": 3, "b": 5}, "8@1"}, {2, map[string]float64{"a": 3}, ""}, {3, map[string]float64{"a": 3}, "8@2"},
			{9, map[string]float64{"a": 3}, "8@3"}, {10, map[string]float64{"a": 3}, "3@9 3@10"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			w := whole[string]{mean: tt.mean, lasting: 5 * time.Second, measured: func(value float64, end time.Time) {
				got = append(got, fmt.Sprintf("%v@%d", value, end.Unix()))
			}}
			for i, s := range tt.steps {
				got = nil
				w.take(time.Unix(int64(s.at), 0), s.parts)
				if text := fmt.Sprint(got); text != "["+s.want+"]" {
					t.Errorf("step %d: %v, want %s", i, got, s.want)
				}
			}
		})
	}
}
