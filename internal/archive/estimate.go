// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/directive"
	"github.com/attune-hpc/attune/internal/estimate"
	"github.com/attune-hpc/attune/internal/quantity"
)

// Estimate is what the next task of a category will need.
type Estimate struct {
	Category string `json:"category"`
	// Tasks are those that it rests on: the latest that succeeded, estimate.Window at most.
	Tasks int `json:"tasks"`
	// LeftOut are those that failed since the first of them, or ever if there are fewer than
	// estimate.Window: they say little of what one that succeeds needs.
	LeftOut int `json:"left_out"`
	directive.Need
}

// Estimate says what the next task of a category needs, whose input has so many bytes (0:
// not known). [ErrUnknown] if no task of it has succeeded.
func (s *Store) Estimate(ctx context.Context, category string, input float64) (*Estimate, error) {
	good, err := s.List(ctx, Filter{Category: category, Succeeded: true, Limit: estimate.Window})
	if err != nil {
		return nil, err
	}
	slices.Reverse(good) // in the order of their ends
	failed, ended, err := s.failures(ctx, category, good)
	if err != nil {
		return nil, err
	}
	if len(good) == 0 {
		return nil, noneSucceeded(category, failed)
	}
	inputs, what := inputsOf(good)
	if input == 0 {
		clear(inputs)
	}
	e := &Estimate{Category: category, Tasks: len(good), LeftOut: failed}
	e.MemoryBytes = bytesAmount(good, inputs, what, input, "asked.memory_bytes", (*Summary).Memory)
	if e.MemoryBytes != nil {
		if err := s.raiseEnded(ctx, e.MemoryBytes, ended); err != nil {
			return nil, err
		}
	}
	e.DiskBytes = bytesAmount(good, inputs, what, input, "asked.disk_bytes", func(t *Summary) (float64, bool) {
		v, known := t.Numbers["disk.bytes_peak"]
		return v, known
	})
	walls, cores := numbersOf(good, "wall_seconds"), numbersOf(good, "cores_average")
	if len(walls) > 0 {
		e.WallSeconds = &directive.Amount{Value: math.Ceil(estimate.Time(walls)/60) * 60, Reason: fmt.Sprintf("the 95th percentile of %s and a fifth more; the longest took %s",
			quantity.Count(len(walls), "task", "tasks"), quantity.Seconds(slices.Max(walls)))}
	}
	if len(cores) > 0 {
		e.Cores = &directive.Amount{Value: float64(estimate.Cores(cores)), Reason: fmt.Sprintf("the 95th percentile of what %s used on average; the most was %.2f", quantity.Count(len(cores), "task", "tasks"), slices.Max(cores))}
	}
	return e, nil
}

// noneSucceeded is the ErrUnknown of a category whose tasks all failed, or that has none.
func noneSucceeded(category string, failed int) error {
	if failed == 0 {
		return fmt.Errorf("category %s: %w", category, ErrUnknown)
	}
	return fmt.Errorf("category %s: none of its %d tasks has succeeded, and a task that failed says little of what one that succeeds needs: %w",
		category, failed, ErrUnknown)
}

// failures returns how many tasks of a category failed in the time of those that succeeded, and
// the latest of these that were ended at a limit.
func (s *Store) failures(ctx context.Context, category string, good []Summary) (failed int, ended []Summary, err error) {
	f := Filter{Category: category, Failed: true}
	if len(good) == estimate.Window { // there were others before them
		f.Since = good[0].End
	}
	err = s.Each(ctx, f, func(t Summary) error {
		failed++
		if t.Exit == account.ExitLimits && len(ended) < estimate.Window {
			ended = append(ended, t)
		}
		return nil
	})
	return failed, ended, err
}

// inputsOf returns the sizes of the inputs of tasks: as they were known before, or where
// that is so of none, what the tasks read; and which of these it is.
func inputsOf(tasks []Summary) (inputs []float64, what string) {
	inputs = make([]float64, len(tasks))
	for _, field := range []string{"input_bytes", "io.read_bytes"} {
		known := 0
		for i := range tasks {
			if inputs[i] = tasks[i].Numbers[field]; inputs[i] > 0 {
				known++
			}
		}
		if known > 0 && field == "input_bytes" {
			return inputs, "input sizes"
		}
	}
	return inputs, "what the tasks read, for want of input sizes,"
}

// bytesAmount chooses an amount of bytes for the next task; nil if no task has it.
func bytesAmount(tasks []Summary, inputs []float64, what string, input float64, askedField string, of func(*Summary) (float64, bool)) *directive.Amount {
	c := estimate.NewBytesChooser()
	asked := 0.0
	for i := range tasks {
		t := &tasks[i]
		if peak, known := of(t); known {
			asked = t.Numbers[askedField]
			c.Add(estimate.Task{Peak: peak, Seconds: t.Numbers["wall_seconds"], Input: inputs[i], Asked: asked})
		}
	}
	choice, known := c.Choose(estimate.Next{Input: input, Asked: asked})
	if !known {
		return nil
	}
	reason := choice.Reason(func(waste float64) string {
		if waste /= 1e9 * 3600; waste < 0.001 {
			return "less than 0.001 GBh"
		}
		return quantity.Number(waste) + " GBh"
	})
	if input > 0 {
		reason = "with " + what + " " + reason
	}
	const mib = 1 << 20
	return &directive.Amount{Value: math.Ceil(choice.Amount/mib) * mib, Reason: reason}
}

// raiseEnded doubles the largest memory at which one of the tasks, which were ended at limits,
// exceeded one of its memory, unless the next task is to have more than that: it would be
// ended again.
func (s *Store) raiseEnded(ctx context.Context, a *directive.Amount, tasks []Summary) error {
	most, id, unreadable := 0.0, "", 0
	for i := range tasks {
		t := &tasks[i]
		whole, err := s.Task(ctx, t.ID)
		if errors.Is(err, ErrUnknown) {
			continue // removed meanwhile
		}
		if errors.Is(err, ErrUnreadable) {
			unreadable++
			continue
		}
		if err != nil {
			return err
		}
		limit, exceeded := whole.exceededMemory()
		memory, _ := t.Memory() // sampled it may be far less than the limit
		if memory = max(memory, limit); exceeded && memory > most {
			most, id = memory, t.ID
		}
	}
	if id != "" && most >= a.Value {
		a.Value = 2 * most
		a.Reason = fmt.Sprintf("twice what task %s had when it was ended at its limit; otherwise %s", id[:8], a.Reason)
	}
	if unreadable > 0 {
		a.Reason += fmt.Sprintf("; without %s that ended at a limit, whose accounts cannot be read", quantity.Count(unreadable, "task", "tasks"))
	}
	return nil
}

// numbersOf are what tasks have in a field.
func numbersOf(tasks []Summary, field string) (out []float64) {
	for _, t := range tasks {
		if v, known := t.Numbers[field]; known {
			out = append(out, v)
		}
	}
	return out
}
