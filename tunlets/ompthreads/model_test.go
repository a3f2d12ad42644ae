// SPDX-License-Identifier: Apache-2.0

package ompthreads

import (
	"math"
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
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
		{"libgomp, 8 threads, 2 us", load{run: 1.14, wait: 2.85, sleeps: 104_898, yields: 20_463, system: 0.714, threads: 8, cpus: 2}, 62},
		{"libgomp, 8 threads, 10 us", load{run: 1.13, wait: 2.89, sleeps: 87_321, yields: 19_238, system: 0.678, threads: 8, cpus: 2}, 19.2},
		{"libgomp, 8 threads, 40 us", load{run: 1.70, wait: 2.68, sleeps: 100_766, yields: 21_047, system: 0.515, threads: 8, cpus: 2}, 3.81},
		{"libgomp, 8 threads, 190 us", load{run: 1.66, wait: 2.73, sleeps: 47_517, yields: 8_014, system: 0.205, threads: 8, cpus: 2}, 1.60},
		{"libgomp, 3 threads, 2 us", load{run: 0.71, wait: 0.97, sleeps: 38_911, yields: 13_345, system: 0.772, threads: 3, cpus: 2}, 39.6},
		{"libgomp, 3 threads, 40 us", load{run: 1.25, wait: 0.67, sleeps: 32_201, yields: 8_871, system: 0.36, threads: 3, cpus: 2}, 2.57},
		{"libomp, 8 threads, 2 us", load{run: 1.94, wait: 6.05, yields: 826_744, system: 0.628, threads: 8, cpus: 2}, 15.7},
		{"libomp, 4 threads, 2 us", load{run: 1.96, wait: 2.04, yields: 678_803, system: 0.558, threads: 4, cpus: 2}, 4.67},
		{"libomp, 8 threads, 25 us", load{run: 1.95, wait: 6.04, yields: 527_517, system: 0.429, threads: 8, cpus: 2}, 1.72},
		{"libomp, 4 threads, 25 us", load{run: 1.95, wait: 2.06, yields: 263_701, system: 0.288, threads: 4, cpus: 2}, 1.24},
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
	busy := load{run: 1.9, wait: 2, threads: 8, cpus: 2}
	for _, tt := range []struct {
		name   string
		change func(*load)
		want   bool
	}{
		{"busy", func(*load) {}, true},
		{"a CPU each", func(l *load) { l.cpus = 8 }, false},
		{"nobody waits", func(l *load) { l.wait = 0.1 }, false},
		{"rests", func(l *load) { l.run = 0.1 }, false},
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
		if got := (load{run: tt.run, cpus: tt.cpus}).sharers(tt.processes); got != tt.want {
			t.Errorf("%s: %d on one set, want %d", tt.name, got, tt.want)
		}
	}
}

func TestLoadNeedsSignals(t *testing.T) {
	w := sdk.NewWindow(time.Second)
	w.Add(sdk.Sample{At: time.Unix(1, 0)}.With(sdk.RunTime, 0))
	w.Add(sdk.Sample{At: time.Unix(2, 0)}.With(sdk.RunTime, 1e9))
	if _, ok := loadOf(w, w.Span()); ok {
		t.Error("a load without the other signals")
	}
}
