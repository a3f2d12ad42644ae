// SPDX-License-Identifier: Apache-2.0

package ompthreads

import (
	"math"
	"testing"
)

// What was measured on two CPUs: bench/workloads/omp_regions with some number of
// threads, its speed with two in relation to that, and what the model says. The
// report takes them for disagreeing where the logarithms differ by more than two.
func TestPredictions(t *testing.T) {
	for _, tt := range []struct {
		name     string
		load     load
		measured float64
	}{
		{"libgomp, 8 threads, 2 us", load{Run: 1.14, Wait: 2.85, Sleeps: 104_898, Yields: 20_463, System: 0.714, Threads: 8, CPUs: 2}, 62},
		{"libgomp, 8 threads, 10 us", load{Run: 1.13, Wait: 2.89, Sleeps: 87_321, Yields: 19_238, System: 0.678, Threads: 8, CPUs: 2}, 19.2},
		{"libgomp, 8 threads, 40 us", load{Run: 1.70, Wait: 2.68, Sleeps: 100_766, Yields: 21_047, System: 0.515, Threads: 8, CPUs: 2}, 3.81},
		{"libgomp, 8 threads, 190 us", load{Run: 1.66, Wait: 2.73, Sleeps: 47_517, Yields: 8_014, System: 0.205, Threads: 8, CPUs: 2}, 1.60},
		{"libgomp, 3 threads, 2 us", load{Run: 0.71, Wait: 0.97, Sleeps: 38_911, Yields: 13_345, System: 0.772, Threads: 3, CPUs: 2}, 39.6},
		{"libgomp, 3 threads, 40 us", load{Run: 1.25, Wait: 0.67, Sleeps: 32_201, Yields: 8_871, System: 0.36, Threads: 3, CPUs: 2}, 2.57},
		{"libomp, 8 threads, 2 us", load{Run: 1.94, Wait: 6.05, Yields: 826_744, System: 0.628, Threads: 8, CPUs: 2}, 15.7},
		{"libomp, 4 threads, 2 us", load{Run: 1.96, Wait: 2.04, Yields: 678_803, System: 0.558, Threads: 4, CPUs: 2}, 4.67},
		{"libomp, 8 threads, 25 us", load{Run: 1.95, Wait: 6.04, Yields: 527_517, System: 0.429, Threads: 8, CPUs: 2}, 1.72},
		{"libomp, 4 threads, 25 us", load{Run: 1.95, Wait: 2.06, Yields: 263_701, System: 0.288, Threads: 4, CPUs: 2}, 1.24},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.load.gain()
			if ratio := math.Log(got) / math.Log(tt.measured); ratio < 0.5 || ratio > 2 {
				t.Errorf("predicted %.2f, measured %.2f", got, tt.measured)
			}
			if !tt.load.crowded() {
				t.Error("not crowded")
			}
		})
	}
}

func TestCrowded(t *testing.T) {
	busy := load{Run: 1.9, Wait: 2, Threads: 8, CPUs: 2}
	for _, tt := range []struct {
		name   string
		change func(*load)
		want   bool
	}{
		{"busy", func(*load) {}, true},
		{"a CPU each", func(l *load) { l.CPUs = 8 }, false},
		{"nobody waits", func(l *load) { l.Wait = 0.1 }, false},
		{"rests", func(l *load) { l.Run = 0.1 }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := busy
			tt.change(&l)
			if got := l.crowded(); got != tt.want {
				t.Errorf("crowded %v, want %v", got, tt.want)
			}
		})
	}
	if g := (load{}).gain(); g != 1 {
		t.Errorf("gain of nothing %v, want 1", g)
	}
}

func TestThreadsFor(t *testing.T) {
	for _, tt := range []struct {
		cpus      float64
		processes int
		want      uint64
	}{{8, 1, 8}, {8, 2, 4}, {8, 3, 2}, {2, 4, 1}, {1, 0, 1}} {
		if got := threadsFor(tt.cpus, tt.processes); got != tt.want {
			t.Errorf("%v CPUs, %d processes: %d threads, want %d", tt.cpus, tt.processes, got, tt.want)
		}
	}
}

func TestSharers(t *testing.T) {
	for _, tt := range []struct {
		name      string
		run, cpus float64
		processes int
		want      int
	}{
		{"one", 2, 2, 1, 1},
		{"two share two CPUs", 1.9, 2, 2, 2},
		{"their times read one after the other", 2.1, 2, 2, 2},
		{"eight share four CPUs", 3.9, 4, 8, 8},
		{"eight ranks with eight cores each", 62, 8, 8, 1},
		{"the same, CPUs are idle while threads are woken", 36, 8, 8, 2},
		{"two with two CPUs each, idle half of the time", 2.3, 2, 2, 1},
		{"two on each of two sets", 3.9, 2, 4, 2},
		{"three on two sets", 3.9, 2, 3, 2},
		{"CPUs not known", 1, 0, 2, 2},
	} {
		if got := (load{Run: tt.run, CPUs: tt.cpus}).sharers(tt.processes); got != tt.want {
			t.Errorf("%s: %d on one set, want %d", tt.name, got, tt.want)
		}
	}
}
