// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"fmt"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/objective"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
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
			w := whole[string]{mean: tt.mean, steady: true, lasting: 5 * time.Second, measured: func(value float64, end time.Time) {
				got = append(got, fmt.Sprintf("%v@%d", value, end.Unix()))
			}}
			for i, s := range tt.steps {
				got = nil
				w.take(time.Time{}, time.Unix(int64(s.at), 0), s.parts)
				if text := fmt.Sprint(got); text != "["+s.want+"]" {
					t.Errorf("step %d: %v, want %s", i, got, s.want)
				}
			}
		})
	}
}

// Of a number that is told now and then the node sets the pace that tells it most seldom: a value
// has nothing in it of before.
func TestNodesInTheirPace(t *testing.T) {
	type told struct {
		node  string
		at    int64
		value float64
		want  string // values of the whole
	}
	for name, tt := range map[string]struct {
		objective string
		told      []told
	}{
		"a rate": {`rate output:(\d+)`, []told{
			{"a", 1, 100, "100@1"}, {"b", 1, 100, ""}, {"a", 2, 120, "220@2"}, {"a", 3, 100, ""}, {"a", 5, 130, ""}, {"b", 5, 10, "130@5"},
		}},
		"a value": {`value output:(\d+)`, []told{{"a", 1, 1, "1@1"}, {"b", 1, 3, ""}, {"a", 2, 5, "4@2"}, {"a", 3, 6, ""}, {"b", 3, 0, "3@3"}}},
		"one that ends": {`rate output:(\d+)`, []told{
			{"a", 1, 100, "100@1"}, {"b", 1, 100, ""}, {"a", 2, 100, "200@2"}, {"a", 31, 120, ""}, {"a", 32, 120, ""}, {"a", 33, 120, "120@33"},
		}},
		"lines": {`output:x`, []told{{"a", 1, 5, "5@1"}, {"b", 1, 5, ""}, {"a", 2, 6, "11@2"}, {"a", 3, 7, ""}, {"a", 4, 8, "12@3"}}},
	} {
		t.Run(name, func(t *testing.T) {
			spec, err := objective.Parse(tt.objective)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			n := newNodes(spec, func(value float64, end time.Time) { got = append(got, fmt.Sprintf("%v@%d", value, end.Unix())) })
			for i, s := range tt.told {
				got = nil
				n.take(s.node, &attunev1.ObjectivePart{Value: s.value, EndUnixNano: s.at * int64(time.Second)})
				if text := fmt.Sprint(got); text != "["+s.want+"]" {
					t.Errorf("step %d: %v, want %s", i, got, s.want)
				}
			}
		})
	}
}
