// SPDX-License-Identifier: Apache-2.0

package estimate

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/attune-hpc/attune/internal/quantity"
)

// The constants of a Chooser. They were set on public traces (bench/estimate says which
// and shows what they give there); none is sharp.
const (
	// failurePrice is what a failed try costs beside its waste, as a part of the most that
	// was seen, for the time of the task: it delays whoever waits for the task.
	failurePrice = 1
	// forget is what is left of a cost after another task: what was cheap of late counts.
	forget = 0.95
	// trust is the weight of what was asked for, against what was seen, before the first
	// task; each task halves it.
	trust = 0.5
)

// Chooser runs methods side by side, and goes by the one that would have cost least of late
// (prequential choice: Dawid, "Statistical Theory: The Prequential Approach", J. R.
// Statist. Soc. A 147(2), 1984). Where a method knows nothing, it is charged for what was
// asked for.
type Chooser struct {
	methods  []Method
	accounts []Account
	most     float64
	tasks    int
}

// Account is what a method would have cost so far.
type Account struct {
	// Name is that of the method.
	Name string
	Cost
	// Recent is what the choice goes by: waste and the price of failed tries, the earlier
	// the less.
	Recent float64
}

// Next is what is known of a task that has not begun.
type Next struct {
	// Input is the size of its input, bytes; 0: not known.
	Input float64
	// Asked is what its owner would ask for; 0: not known.
	Asked float64
}

// Choice is what a Chooser says of a task.
type Choice struct {
	// Amount is what to ask for.
	Amount float64
	// By is the method that was chosen, Others are the rest of those that know something.
	By     Account
	Others []Account
}

// NewChooser returns a Chooser between methods, which it owns from then on. Of two that
// cost the same it prefers the earlier.
func NewChooser(methods ...Method) *Chooser {
	c := &Chooser{methods: methods, accounts: make([]Account, len(methods))}
	for i, m := range methods {
		c.accounts[i].Name = m.Name()
	}
	return c
}

// step is that of cctools' modes, bytes.
const step = 250 << 20

// NewBytesChooser returns the chooser for bytes of memory or disk.
func NewBytesChooser() *Chooser {
	return NewChooser(NewMax(step), NewPonder(ponderMargin), NewLine(lineMargin), NewOffset(1), NewOffset(3), NewMinWaste(step))
}

// Add tells of a task that has ended.
func (c *Chooser) Add(t Task) {
	for i, m := range c.methods {
		amount, known := m.Estimate(t.Input)
		switch {
		case known:
		case t.Asked > 0:
			amount = t.Asked
		default: // the same for all who know nothing
			amount = t.Peak
		}
		a := &c.accounts[i]
		before := a.Cost
		a.Run(t, amount, c.most)
		price := failurePrice * float64(a.Failed-before.Failed) * max(c.most, t.Peak) * t.Seconds
		a.Recent = forget*a.Recent + a.Waste - before.Waste + price
		m.Add(t)
	}
	c.most = max(c.most, t.Peak)
	c.tasks++
}

// Choose returns what to ask for. It is not known before the first task.
func (c *Chooser) Choose(n Next) (choice Choice, known bool) {
	best := -1
	var informed []int
	for i, m := range c.methods {
		amount, ok := m.Estimate(n.Input)
		if !ok {
			continue
		}
		informed = append(informed, i)
		if best < 0 || c.accounts[i].Recent < c.accounts[best].Recent {
			best, choice.Amount = i, amount
		}
	}
	if best < 0 {
		return Choice{}, false
	}
	choice.Amount, choice.By = c.temper(choice.Amount, n.Asked), c.accounts[best]
	for _, i := range informed {
		if i != best {
			choice.Others = append(choice.Others, c.accounts[i])
		}
	}
	return choice, true
}

// temper moves an amount towards what was asked for, if that is more (twice the amount
// where it is not known), on a scale of ratios; after ten tasks there is nothing left of
// that. Two tasks say little of how much a third may need.
func (c *Chooser) temper(amount, asked float64) float64 {
	asked = cmp.Or(asked, 2*amount)
	if asked <= amount || amount <= 0 {
		return amount
	}
	weight := trust * math.Pow(0.5, float64(c.tasks))
	return math.Pow(amount, 1-weight) * math.Pow(asked, weight)
}

// Reason says in a sentence why the method was chosen. say makes text of a waste, which is
// in the unit of the resource times seconds.
func (c Choice) Reason(say func(waste float64) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "by %s, the cheapest of late; over %s it would have wasted %s", c.By.Name, quantity.Count(c.By.Tasks, "task", "tasks"), say(c.By.Waste))
	if c.By.Failed > 0 {
		fmt.Fprintf(&b, " with %s", quantity.Count(c.By.Failed, "failed try", "failed tries"))
	}
	for i, o := range c.Others {
		separator := ","
		if i == 0 {
			separator = "; the others:"
		}
		fmt.Fprintf(&b, "%s %s %s", separator, o.Name, say(o.Waste))
		if o.Failed > 0 {
			fmt.Fprintf(&b, " (%d failed)", o.Failed)
		}
	}
	return b.String()
}
