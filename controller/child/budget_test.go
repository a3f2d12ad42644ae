// SPDX-License-Identifier: Apache-2.0

package child

import (
	"testing"
	"time"
)

// TestBudget: a session may work hard for minutes, and at its share for ever.
func TestBudget(t *testing.T) {
	for _, tt := range []struct {
		name string
		// of a core, in the hours that follow one another
		loads []float64
		over  time.Duration // 0: never
	}{
		{"its share", []float64{0.49, 0.49, 0.49}, 0},
		{"an endless loop", []float64{1}, 10 * time.Minute},
		{"a loop after a rest", []float64{0, 1}, 70 * time.Minute},
		{"eight loops", []float64{8}, 40 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, began, used := newBudget(), time.Now(), time.Duration(0)
			for second := range len(tt.loads) * 3600 {
				at := time.Duration(second) * time.Second
				if err := b.spend(began.Add(at), used); err != nil {
					if late := at - tt.over; tt.over == 0 || late < 0 || late > 3*time.Second {
						t.Errorf("given up after %v, want %v: %v", at, tt.over, err)
					}
					return
				}
				used += time.Duration(tt.loads[second/3600] * float64(time.Second))
			}
			if tt.over != 0 {
				t.Errorf("it goes on, want its end after %v", tt.over)
			}
		})
	}
}
