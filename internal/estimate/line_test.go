// SPDX-License-Identifier: Apache-2.0

package estimate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// near says whether two amounts are the same but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b), 1) }

// TestExpectile: no line near it has a lower loss; and a line is found again.
func TestExpectile(t *testing.T) {
	loss := func(l line, inputs, peaks []float64) (sum float64) {
		for i, x := range inputs {
			r := peaks[i] - l.of(x)
			if r < 0 {
				sum += overWeight * r * r
			} else {
				sum += r * r
			}
		}
		return sum
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var inputs, peaks []float64
		for range 5 + random.IntN(50) {
			x := random.Float64() * 100
			inputs, peaks = append(inputs, x), append(peaks, 3*x+20+random.ExpFloat64()*30)
		}
		l, fits := expectile(inputs, peaks)
		if !fits {
			t.Fatal("no line")
		}
		best := loss(l, inputs, peaks)
		for _, other := range []line{{l.at + 0.1, l.slope}, {l.at - 0.1, l.slope}, {l.at, l.slope + 0.01}, {l.at, l.slope - 0.01}} {
			if loss(other, inputs, peaks) < best {
				t.Fatalf("%+v has a lower loss than %+v", other, l)
			}
		}
	}
	if l, fits := expectile([]float64{1, 2, 3, 4}, []float64{12, 14, 16, 18}); !fits || !near(l.at, 10) || !near(l.slope, 2) {
		t.Errorf("%+v, %t; want 10 + 2·input", l, fits)
	}
	if _, fits := expectile([]float64{7, 7, 7}, []float64{1, 2, 3}); fits {
		t.Error("a line through one input")
	}
}

// TestCheapest compares with each offset tried by Cost.
func TestCheapest(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var tasks []Task
		most := 0.0
		base := line{random.Float64() * 10, random.Float64()}
		for range 1 + random.IntN(20) {
			task := Task{Peak: 1 + float64(random.IntN(100)), Seconds: 1 + float64(random.IntN(9)), Input: float64(random.IntN(20))}
			tasks, most = append(tasks, task), max(most, task.Peak)
		}
		price := func(offset float64) float64 {
			var total float64
			for _, task := range tasks {
				amount := base.of(task.Input) + offset
				if amount >= task.Peak {
					total += (amount - task.Peak) * task.Seconds
				} else {
					total += (amount + most - task.Peak + failurePrice*most) * task.Seconds
				}
			}
			return total
		}
		offset, cost := cheapest(tasks, base, most)
		if !near(cost, price(offset)) {
			t.Fatalf("offset %v costs %v, not %v", offset, price(offset), cost)
		}
		for _, task := range tasks {
			other := task.Peak - base.of(task.Input)
			if price(other) < cost-1e-9 {
				t.Fatalf("offset %v costs %v, less than the %v of %v", other, price(other), cost, offset)
			}
		}
	}
}

// On a line without noise, what is estimated is the line and the margin, also for inputs
// that are larger than any before.
func TestLines(t *testing.T) {
	for _, tt := range []struct {
		method Method
		margin float64
	}{{NewLine(5), 5}, {NewPonder(5), 5}, {NewOffset(1), lineMargin}} {
		t.Run(tt.method.Name(), func(t *testing.T) {
			const unit = 1 << 30
			for i := range 40 {
				input := float64(i%10 + 1)
				tt.method.Add(Task{Peak: (4*input + 3) * unit, Seconds: 10, Input: input})
			}
			for _, input := range []float64{1, 5, 10, 20} {
				want := (4*input+3)*unit + tt.margin
				if got, known := tt.method.Estimate(input); !known || math.Abs(got-want) > 1 {
					t.Errorf("input %v: %.0f, %t; want %.0f", input, got, known, want)
				}
			}
		})
	}
}

func TestPonderWithoutALine(t *testing.T) {
	add := func(tasks ...Task) *Ponder {
		p := NewPonder(10)
		for _, task := range tasks {
			p.Add(task)
		}
		return p
	}
	few := []Task{{Peak: 50, Input: 100}, {Peak: 40, Input: 200}}
	unrelated := slices.Concat(few, []Task{{Peak: 55, Input: 50}, {Peak: 52, Input: 120}, {Peak: 41, Input: 190}})
	for _, tt := range []struct {
		name  string
		tasks []Task
		input float64
		want  float64
		known bool
	}{
		{"nothing seen", nil, 10, 0, false},
		{"few, a larger input", few, 150, 60, true},
		{"few, no larger input", few, 250, 0, false},
		{"few, unknown input", few, 0, 0, false},
		{"unrelated", unrelated, 500, 65, true},
		{"unknown input", unrelated, 0, 65, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, known := add(tt.tasks...).Estimate(tt.input); got != tt.want && tt.known || known != tt.known {
				t.Errorf("%v, %t; want %v, %t", got, known, tt.want, tt.known)
			}
		})
	}
}

// Only the last tasks are remembered by the methods that fit lines.
func TestWindow(t *testing.T) {
	o := NewOffset(1)
	o.Add(Task{Peak: 100 << 30, Seconds: 1})
	for range Window {
		o.Add(Task{Peak: 1 << 30, Seconds: 1})
	}
	if got, _ := o.Estimate(0); got != 1<<30+flatMargin || len(o.tasks) != Window {
		t.Errorf("%.0f with %d tasks", got, len(o.tasks))
	}
}
