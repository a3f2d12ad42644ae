// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"testing"
)

func TestModel(t *testing.T) {
	for _, tt := range []struct {
		name    string
		load    load
		symptom bool
		gain    float64 // by batches of 64
	}{
		{"idle", load{}, false, 1},
		{"small writes", load{calls: 1e6, bytes: 35e6, system: 0.5}, true, 1.969},
		{"large writes", load{calls: 30_000, bytes: 30_000 * 4096, system: 0.5}, false, 1.969},
		{"nothing but calls", load{calls: 2e6, bytes: 7e7, system: 1}, true, 15.422},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.load.symptom(); got != tt.symptom {
				t.Errorf("symptom %v, want %v", got, tt.symptom)
			}
			if got := tt.load.gain(64); math.Abs(got-tt.gain) > 0.001 {
				t.Errorf("gain %.3f, want %.3f", got, tt.gain)
			}
		})
	}
}
