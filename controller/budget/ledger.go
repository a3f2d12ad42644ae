// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"time"
)

// Level is how much of a point's hits is delivered.
type Level int

// Levels, the most expensive first.
const (
	// Each hit.
	Each Level = iota
	// Sampled: one hit in [SampleEvery], or as many more as were asked for.
	Sampled
	// Aggregated in place; single hits are not delivered.
	Aggregated
	// Off: the point is not in place.
	Off

	levels = int(Off) + 1
)

// SampleEvery is how many hits one stands for at [Sampled].
const SampleEvery = 128

const (
	// firstPause is how long a point that got less stays so at least, lastPause
	// the most that this grows to.
	firstPause = 5 * time.Second
	lastPause  = 10 * time.Minute
	// headroom is the part of the budget that points must be expected to stay
	// in before one gets more again: between it and the whole nothing changes.
	headroom = 0.5
	// idleShare of the time may be taken in any case: 1 ms a second is less
	// than the accounting's own noise in a process that hardly runs.
	idleShare = 0.001
)

// Load is what a point did in a round.
type Load struct {
	// Point is its index.
	Point uint16
	// Asked is the level that was asked for, Now the one that is in force.
	Asked, Now Level
	// Hits in the round; unknown, and 0, where Now is Off.
	Hits uint64
	// Every is how many hits a record stands for that was sampled: for whoever fills in Hits.
	Every uint64
	// Costs of one hit.
	Costs Costs
}

// Costs of one hit in nanoseconds, by level.
type Costs [levels]float64

// taken is the time that the point takes in a round at a level.
func (l Load) taken(at Level) time.Duration {
	if at == Off {
		return 0
	}
	return time.Duration(float64(l.Hits) * l.Costs[at])
}

// Step is a change of one point's level.
type Step struct {
	Point uint16
	To    Level
	// Reason for people.
	Reason string
}

// Ledger keeps the accounts of one process.
type Ledger struct {
	share  float64
	points map[uint16]*account
}

// account is what is remembered of a point that got less once.
type account struct {
	pause time.Duration
	calm  time.Duration // it has been affordable for so long
	// cut says that it was to get less when it was at the level from, which takes some
	// rounds where points are being placed.
	cut  bool
	from Level
}

// New returns a Ledger for points that may take a share of their process' CPU time.
func New(share float64) *Ledger {
	return &Ledger{share: share, points: make(map[uint16]*account)}
}

// Round tells what the process and its points did in a time, and returns what is
// to change.
func (l *Ledger) Round(elapsed, cpu time.Duration, loads []Load) []Step {
	budget := max(time.Duration(float64(cpu)*l.share), time.Duration(float64(elapsed)*idleShare))
	var total time.Duration
	for _, load := range loads {
		total += load.taken(load.Now)
	}
	if total > budget {
		return l.less(loads, total, budget, cpu)
	}
	return l.more(loads, total, budget, elapsed)
}

// less takes levels from the most expensive points until the rest is
// affordable. Levels that cost as much as the one before are left out.
func (l *Ledger) less(loads []Load, total, budget, cpu time.Duration) []Step {
	then := make([]Level, len(loads))
	for i, load := range loads {
		then[i] = load.Now
	}
	left := total
	for left > budget {
		worst := -1
		for i, load := range loads {
			if then[i] != Off && load.Hits > 0 && (worst < 0 || load.taken(then[i]) > loads[worst].taken(then[worst])) {
				worst = i
			}
		}
		if worst < 0 {
			break
		}
		next := loads[worst].cheaper(then[worst])
		left -= loads[worst].taken(then[worst]) - loads[worst].taken(next)
		then[worst] = next
	}
	var steps []Step
	for i, load := range loads {
		if then[i] == load.Now {
			continue
		}
		l.account(load.Point).punish(load.Now)
		steps = append(steps, Step{load.Point, then[i], fmt.Sprintf(
			"it took %s of the process' CPU time, all points together %s, where the budget is %s",
			percent(load.taken(load.Now), cpu), percent(total, cpu), percent(budget, cpu))})
	}
	return steps
}

// cheaper is the next level that costs a tenth less at least.
func (l Load) cheaper(than Level) Level {
	for at := than + 1; at < Off; at++ {
		if l.Costs[at] < 0.9*l.Costs[than] {
			return at
		}
	}
	return Off
}

// more gives one point a level back if that has been affordable for its pause.
// One at a time: what two would take together nobody knows yet.
func (l *Ledger) more(loads []Load, total, budget, elapsed time.Duration) []Step {
	var steps []Step
	for _, load := range loads {
		if load.Now <= load.Asked {
			continue
		}
		a := l.account(load.Point)
		to := load.dearer()
		after := total - load.taken(load.Now) + load.taken(to)
		if float64(after) > headroom*float64(budget) {
			a.calm = 0
			continue
		}
		if a.calm += elapsed; a.calm >= a.pause && len(steps) == 0 {
			a.calm, a.cut = 0, false
			steps = append(steps, Step{load.Point, to, fmt.Sprintf("it has been affordable for %v", a.pause)})
		}
	}
	return steps
}

// dearer is the next level up that costs more, or the one asked for. A point
// that is off is tried at the level that costs least.
func (l Load) dearer() Level {
	if l.Now == Off {
		best := l.Asked
		for at := l.Asked + 1; at < Off; at++ {
			if l.Costs[at] < l.Costs[best] {
				best = at
			}
		}
		return best
	}
	at := l.Now - 1
	for at > l.Asked && l.Costs[at] <= l.Costs[l.Now] {
		at--
	}
	return max(at, l.Asked)
}

func (l *Ledger) account(point uint16) *account {
	if l.points[point] == nil {
		l.points[point] = &account{}
	}
	return l.points[point]
}

// punish makes the next pause longer than the last one, once for a level that the point is
// cut from, however often that is asked for.
func (a *account) punish(from Level) {
	if a.cut && a.from == from {
		return
	}
	a.cut, a.from, a.calm = true, from, 0
	a.pause = min(max(2*a.pause, firstPause), lastPause)
}

// percent of the CPU time; of a process that had none everything is too much.
func percent(part, whole time.Duration) string {
	if whole <= 0 {
		return part.String()
	}
	return fmt.Sprintf("%.3g %%", 100*float64(part)/float64(whole))
}
