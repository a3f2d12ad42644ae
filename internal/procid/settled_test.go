// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"errors"
	"slices"
	"testing"
)

// A listing may lack a living thread when another one has ended meanwhile.
func TestSettled(t *testing.T) {
	restless := make([][]int, listings)
	for i := range restless {
		restless[i] = []int{1, 10 + i}
	}
	for name, tt := range map[string]struct {
		lists    [][]int
		want     []int
		complete bool
	}{
		"at once":         {[][]int{{1, 2, 3}, {1, 2, 3}}, []int{1, 2, 3}, true},
		"3 is skipped":    {[][]int{{1, 2, 4}, {1, 3, 4}, {1, 3, 4}}, []int{1, 3, 4}, true},
		"never the same":  {restless, []int{1, 10, 11, 12, 13, 14, 15}, false},
		"the process has": {[][]int{{1, 2}}, nil, false},
	} {
		lists := tt.lists
		got, complete, err := settled(func() ([]int, error) {
			if len(lists) == 0 {
				return nil, ErrGone
			}
			next := lists[0]
			lists = lists[1:]
			return next, nil
		})
		if !slices.Equal(got, tt.want) || complete != tt.complete || errors.Is(err, ErrGone) != (tt.want == nil) {
			t.Errorf("%s: %v, complete %v, %v; want %v, %v", name, got, complete, err, tt.want, tt.complete)
		}
	}
}
