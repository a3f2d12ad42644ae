// SPDX-License-Identifier: Apache-2.0

package estimate

// Task is a task that has ended.
type Task struct {
	// Peak is what it had at most of the resource.
	Peak float64
	// Seconds is how long it ran.
	Seconds float64
	// Input is the size of its input, bytes; 0: not known.
	Input float64
	// Asked is what was asked for; 0: not known.
	Asked float64
}

// Method is a way to say what the next task needs.
type Method interface {
	// Name is what people call the method.
	Name() string
	// Add tells of a task that has ended.
	Add(t Task)
	// Estimate returns what to ask for, for a task whose input has so many bytes (0: not
	// known). It is not known while the method has seen too little.
	Estimate(input float64) (amount float64, known bool)
}

// Cost is what tries of tasks took in vain.
type Cost struct {
	// Waste is what was asked for and not used, and all of the tries that failed, in the
	// unit of the resource times seconds.
	Waste float64
	// Failed counts tries that ended because the task needed more.
	Failed int
	// Tasks counts the tasks.
	Tasks int
}

// Run adds what a task costs if it is first given an amount. A try with less than the
// peak fails, and lasts as long as the whole task; the next one is given the most that any
// task before has taken, and each one after it twice as much.
func (c *Cost) Run(t Task, amount, most float64) {
	c.Tasks++
	for amount < t.Peak {
		c.Failed++
		c.Waste += amount * t.Seconds
		switch {
		case amount < most:
			amount = most
		case amount > 0:
			amount *= 2
		default:
			amount = t.Peak
		}
	}
	c.Waste += (amount - t.Peak) * t.Seconds
}
