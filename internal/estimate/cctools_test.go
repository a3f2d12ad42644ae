// SPDX-License-Identifier: Apache-2.0

package estimate

import (
	"testing"
)

const mb = 1e6

// addAll adds tasks that all run for a second.
func addAll(m interface{ Add(Task) }, peaks map[float64]int, order ...float64) {
	for _, peak := range order {
		for range peaks[peak] {
			m.Add(Task{Peak: peak, Seconds: 1})
		}
	}
}

func TestMinWaste(t *testing.T) {
	tests := []struct {
		name  string
		peaks map[float64]int
		order []float64
		want  float64
	}{
		// a·τ̄ + m·Σp·τ is 2600, 2400 and 4000 for 1000, 2000 and 4000.
		{"three sizes", map[float64]int{1000 * mb: 60, 2000 * mb: 30, 4000 * mb: 10}, []float64{1000 * mb, 2000 * mb, 4000 * mb}, 2000 * mb},
		{"the greatest first", map[float64]int{1000 * mb: 60, 2000 * mb: 30, 4000 * mb: 10}, []float64{4000 * mb, 2000 * mb, 1000 * mb}, 2000 * mb},
		{"all the same", map[float64]int{700 * mb: 50}, []float64{700 * mb}, 750 * mb},
		{"half and half", map[float64]int{1000 * mb: 50, 1250 * mb: 50}, []float64{1000 * mb, 1250 * mb}, 1250 * mb},
		{"a rare giant", map[float64]int{1000 * mb: 99, 50000 * mb: 1}, []float64{1000 * mb, 50000 * mb}, 1000 * mb},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := NewMinWaste(250 * mb)
			addAll(m, tt.peaks, tt.order...)
			if got, known := m.Estimate(0); !known || got != tt.want {
				t.Errorf("%.0f MB, %t; want %.0f", got/mb, known, tt.want/mb)
			}
		})
	}
}

// Tasks that run longer weigh more: 10 of 100 that take much for a long time are not let
// fail.
func TestMinWasteGoesByTime(t *testing.T) {
	m := NewMinWaste(250 * mb)
	for i := range 100 {
		task := Task{Peak: 1000 * mb, Seconds: 1}
		if i%10 == 0 {
			task = Task{Peak: 4000 * mb, Seconds: 100}
		}
		m.Add(task)
	}
	if got, _ := m.Estimate(0); got != 4000*mb {
		t.Errorf("%.0f MB, want 4000", got/mb)
	}
}

// It knows nothing before the 25th task, chooses anew after each 25th, and at once after
// a new maximum.
func TestMinWasteIsChosenInSteps(t *testing.T) {
	m := NewMinWaste(250 * mb)
	addAll(m, map[float64]int{1000 * mb: 24}, 1000*mb)
	if _, known := m.Estimate(0); known {
		t.Error("known after 24 tasks")
	}
	m.Add(Task{Peak: 1000 * mb, Seconds: 1})
	steps := []struct {
		peak, want float64
		tasks      int
	}{
		{1250 * mb, 1000 * mb, 1}, // a new maximum, rare
		{1250 * mb, 1000 * mb, 23},
		{1250 * mb, 1250 * mb, 1}, // the 50th task
	}
	for _, s := range steps {
		for range s.tasks {
			m.Add(Task{Peak: s.peak, Seconds: 1})
		}
		if got, _ := m.Estimate(0); got != s.want {
			t.Errorf("%.0f MB, want %.0f", got/mb, s.want/mb)
		}
	}
}

func TestMax(t *testing.T) {
	for _, tt := range []struct {
		name string
		most float64
		want float64
	}{
		{"nothing", 0, 250},
		{"a little", 100, 250},
		{"just fits with the padding", 166, 250},
		{"just not", 167, 500},
		{"more", 1000, 1250},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := NewMax(250)
			if _, known := m.Estimate(0); known {
				t.Error("known before the first task")
			}
			m.Add(Task{Peak: tt.most})
			m.Add(Task{Peak: tt.most / 2})
			if got, known := m.Estimate(0); !known || got != tt.want {
				t.Errorf("%v, %t; want %v", got, known, tt.want)
			}
		})
	}
}
