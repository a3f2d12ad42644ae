// SPDX-License-Identifier: Apache-2.0

package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestCost(t *testing.T) {
	for _, tt := range []struct {
		name               string
		amount, peak, most float64
		waste              float64
		failed             int
	}{
		{"enough", 100, 60, 0, 400, 0},
		{"just enough", 60, 60, 0, 0, 0},
		{"then the most", 50, 60, 80, 500 + 200, 1},
		{"then twice as much, and again", 10, 60, 20, 100 + 200 + 400 + 200, 3},
		{"most is no more", 50, 60, 40, 500 + 400, 1},
		{"nothing known", 0, 60, 0, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c Cost
			c.Run(Task{Peak: tt.peak, Seconds: 10}, tt.amount, tt.most)
			if c.Waste != tt.waste || c.Failed != tt.failed || c.Tasks != 1 {
				t.Errorf("%+v, want waste %v, %d failed", c, tt.waste, tt.failed)
			}
		})
	}
}

// fixed always says the same.
type fixed struct {
	name   string
	amount float64
}

func (f fixed) Name() string                     { return f.name }
func (fixed) Add(Task)                           {}
func (f fixed) Estimate(float64) (float64, bool) { return f.amount, f.amount > 0 }

func TestChooserTakesTheCheapest(t *testing.T) {
	c := NewChooser(fixed{"low", 40}, fixed{"right", 110}, fixed{"high", 1000}, fixed{"silent", 0})
	if _, known := c.Choose(Next{}); !known {
		t.Error("a method that knows without tasks is not asked")
	}
	for range 20 {
		c.Add(Task{Peak: 100, Seconds: 3600, Asked: 500})
	}
	got, known := c.Choose(Next{Asked: 500})
	if !known || got.By.Name != "right" || math.Abs(got.Amount-110) > 0.01 {
		t.Fatalf("%+v, %t", got, known)
	}
	say := func(waste float64) string { return fmt.Sprintf("%.0f unit-hours", waste/3600) }
	const want = "by right, the cheapest of late; over 20 tasks it would have wasted 200 unit-hours; the others: low 940 unit-hours (21 failed), " +
		"high 18000 unit-hours"
	if reason := got.Reason(say); reason != want {
		t.Errorf("reason %q, want %q", reason, want)
	}
}

// What was cheap at first and is not any more is left.
func TestChooserFollowsChange(t *testing.T) {
	c := NewChooser(fixed{"small", 100}, fixed{"large", 200})
	for range 200 {
		c.Add(Task{Peak: 90, Seconds: 1})
	}
	if got, _ := c.Choose(Next{}); got.By.Name != "small" {
		t.Fatalf("by %s at first", got.By.Name)
	}
	for range 20 {
		c.Add(Task{Peak: 190, Seconds: 1})
	}
	if got, _ := c.Choose(Next{}); got.By.Name != "large" {
		t.Errorf("by %s in the end", got.By.Name)
	}
}

// One task says little: what was asked for counts still. Twenty do.
func TestChooserTrustsFewTasksLittle(t *testing.T) {
	const gib = 1 << 30
	amount := func(tasks int, asked float64) float64 {
		c := NewBytesChooser()
		for range tasks {
			c.Add(Task{Peak: gib, Seconds: 1, Asked: asked})
		}
		choice, known := c.Choose(Next{Asked: asked})
		if known != (tasks > 0) {
			t.Fatalf("%d tasks: known %t", tasks, known)
		}
		return choice.Amount / gib
	}
	before := math.Inf(1)
	for tasks := 1; tasks <= 20; tasks++ {
		now := amount(tasks, 64*gib)
		if now > before || now < 1 {
			t.Errorf("%d tasks: %.2f GiB after %.2f", tasks, now, before)
		}
		before = now
	}
	if first := amount(1, 64*gib); first < 2 || first > 4 {
		t.Errorf("%.2f GiB after one task of 1 GiB, 64 asked", first)
	}
	if first := amount(1, 0); first < 1.1 || first > 2 {
		t.Errorf("%.2f GiB after one task of 1 GiB, unknown what was asked", first)
	}
	if last := amount(20, 64*gib); last > 1.2 {
		t.Errorf("%.2f GiB after 20 tasks of 1 GiB", last)
	}
}

// Whatever the history, each method says a finite amount that is no less than the least
// peak; the maximum is never below what was seen, and never falls; and the same history
// gives the same choice.
func TestMethodsKeepTheirPromises(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		methods := []Method{NewMax(step), NewPonder(ponderMargin), NewLine(lineMargin), NewOffset(1), NewOffset(3), NewMinWaste(step)}
		c, again := NewBytesChooser(), NewBytesChooser()
		least, most, before := math.Inf(1), 0.0, 0.0
		for range random.IntN(80) {
			task := Task{Peak: math.Exp(20 + 4*random.Float64()), Seconds: 100 * random.Float64(), Input: float64(random.IntN(3)) * random.Float64() * 1e9}
			if random.IntN(2) == 0 {
				task.Asked = math.Exp(25 * random.Float64())
			}
			least, most = min(least, task.Peak), max(most, task.Peak)
			c.Add(task)
			again.Add(task)
			input := float64(random.IntN(2)) * random.Float64() * 1e10
			for i, m := range methods {
				m.Add(task)
				amount, known := m.Estimate(input)
				if known && (math.IsNaN(amount) || math.IsInf(amount, 0) || amount < least) {
					t.Fatalf("%s: %v with least %v", m.Name(), amount, least)
				}
				if i == 0 && (amount < most || amount < before) {
					t.Fatalf("maximum %v after %v, most %v", amount, before, most)
				} else if i == 0 {
					before = amount
				}
			}
			choice, known := c.Choose(Next{Input: input})
			second, _ := again.Choose(Next{Input: input})
			if !known || choice.Amount < least || choice.Amount != second.Amount || len(choice.Others) > 5 {
				t.Fatalf("choice %+v (%t) and %+v, least %v", choice, known, second, least)
			}
		}
	}
}

func TestTimeAndCores(t *testing.T) {
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64(100-i))
	}
	if got := Time(hundred); math.Abs(got-95.05*1.2) > 1e-9 { // as numpy.percentile(hundred, 95) has it
		t.Errorf("time %v", got)
	}
	if got := Time(nil); got != 0 {
		t.Errorf("time %v without tasks", got)
	}
	for _, tt := range []struct {
		used []float64
		want int
	}{{nil, 1}, {[]float64{0.1}, 1}, {[]float64{1.02, 1.01}, 1}, {[]float64{1.2}, 2}, {[]float64{3.9, 4}, 4}} {
		if got := Cores(tt.used); got != tt.want {
			t.Errorf("cores of %v: %d, want %d", tt.used, got, tt.want)
		}
	}
}
