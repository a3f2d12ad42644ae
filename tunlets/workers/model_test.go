// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"math"
	"testing"

	"go.uber.org/goleak"

	"github.com/attune-hpc/attune/tunlets/kit/masterworker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vector is the test vector of the model: m0 = 1, α = 0.5, λ = 1e-7, V = 2e8,
// Tc = 4000.
func vector() Cost { return fromMessages(1, 0.5, 1e-7, 2e8, 4000) }

func TestVector(t *testing.T) {
	c := vector()
	for _, tt := range []struct {
		name      string
		got, want float64
		digits    float64
	}{
		{"closed form", bestIndex(c), 11.35, 0.005},
		{"full scan", float64(Scan(1, 1000, c.Index)), 11, 0},
		{"time", c.Time(11), 485.636, 0.0005},
		{"index", c.Index(11), 648.567, 0.0005},
		{"shortest time", float64(Scan(1, 1000, c.Time)), 20, 0},
		{"shortest time in closed form", bestTime(c), 20, 1e-9},
	} {
		if math.Abs(tt.got-tt.want) > tt.digits {
			t.Errorf("%s: %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

// The closed form and the scan agree for whatever there is.
func TestClosedFormIsTheScan(t *testing.T) {
	for _, m0 := range []float64{0, 1e-5, 1} {
		for _, alpha := range []float64{0.1, 0.5, 1} {
			for _, work := range []float64{1, 100, 4000} {
				c := fromMessages(m0, alpha, 1e-7, 2e7, work)
				n, best := bestIndex(c), Scan(1, 10_000, c.Index)
				if low, high := max(1, math.Floor(n)), max(1, math.Ceil(n)); float64(best) != low && float64(best) != high {
					t.Errorf("%+v: scan says %d, closed form %.2f", c, best, n)
				}
			}
		}
	}
	free := fromMessages(1, 0, 1e-7, 2e7, 4000)
	if n := bestIndex(free); n != 1000 || Scan(1, 10_000, free.Index) != 1000 {
		t.Errorf("workers that cost nothing: %v, want Tc/Fixed = 1000", n)
	}
}

func TestCPUsBoundTheWork(t *testing.T) {
	c := Cost{PerWorker: 0.1e-3, Work: 8e-3, CPUs: 2}
	if n := Scan(1, 64, c.Time); n != 2 {
		t.Errorf("%d workers on two CPUs, want 2", n)
	}
}

func TestPlan(t *testing.T) {
	measured := func(value, period, dispatch, work, share float64) masterworker.Measured {
		return masterworker.Measured{
			Seconds: 100 * period, Rounds: 100, Value: value, Dispatches: 100 * value, DispatchSeconds: 100 * value * dispatch,
			Tasks: 100 * value, TaskSeconds: 100 * work / share, RunShare: share, CPUs: 4,
		}
	}
	for _, tt := range []struct {
		name string
		m    masterworker.Measured
		n    int
		gain float64
	}{
		{"one of four CPUs is used", measured(1, 8.1e-3, 1e-4, 8e-3, 1), 4, 3.37},
		{"sixteen messages too many", measured(16, 18e-3, 1e-3, 8e-3, 1), 3, 3.18},
		{"the same on a machine where calls wait", measured(16, 18e-3, 1e-3, 8e-3, 0.5), 3, 3.18},
		{"as it should be", measured(4, 2.4e-3, 1e-4, 8e-3, 1), 4, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tunlet := &Tunlet{options: options{Least: 1, Most: 64, Goal: GoalTime}}
			plan, ok := tunlet.Plan(tt.m)
			if v, _ := plan.Value.Uint64(); int(v) != tt.n || math.Abs(plan.Gain-tt.gain) > 0.01 || ok != (tt.gain > 1) {
				t.Errorf("%d workers, gain %.3f, %v; want %d, %.3f", v, plan.Gain, ok, tt.n, tt.gain)
			}
		})
	}
	if _, ok := (&Tunlet{options: options{Least: 1, Most: 64}}).Plan(masterworker.Measured{}); ok {
		t.Error("plans without knowing how many workers there are")
	}
}

// fromMessages is the cost as the model's author has it:
//
//	Tt(n) = 2·m0 + ((n-1)·α + 1)·λ·V + Tc/n
//
// m0 is the seconds that a message takes to start, λ the seconds per byte, V the
// bytes that the master exchanges with one worker in a round, α the part of them
// that it sends: it sends to n workers one after the other, and the last one's
// result comes back alone. Tc is the seconds of computing of a round.
func fromMessages(m0, alpha, lambda, volume, work float64) Cost {
	return Cost{
		Fixed:     2*m0 + (1-alpha)*lambda*volume,
		PerWorker: alpha * lambda * volume, Work: work,
	}
}

// bestIndex is the n, not whole, at which Index is least, without regard to CPUs.
// dPi/dn = 0 leads to 3·PerWorker·n² + Fixed·n - Work = 0. It is infinite where
// workers cost nothing and rounds are nothing but work.
func bestIndex(c Cost) float64 {
	if c.PerWorker == 0 {
		return c.Work / c.Fixed
	}
	return (math.Sqrt(c.Fixed*c.Fixed+12*c.PerWorker*c.Work) - c.Fixed) / (6 * c.PerWorker)
}

// bestTime is the n at which Time is least: sqrt(Work/PerWorker).
func bestTime(c Cost) float64 { return math.Sqrt(c.Work / c.PerWorker) }
