// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"fmt"
	"strconv"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
)

// step is what a step of a job took.
type step struct {
	memory, virtual uint64
	tasks           uint64
}

func readStep(row map[string]string) (s step, err error) {
	s.tasks = 1
	if n := row["NTasks"]; n != "" {
		if s.tasks, err = strconv.ParseUint(n, 10, 32); err != nil {
			return s, fmt.Errorf("NTasks %q is no number", n)
		}
	}
	for column, into := range map[string]*uint64{"MaxRSS": &s.memory, "MaxVMSize": &s.virtual} {
		text := row[column]
		if text == "" {
			continue
		}
		if *into, err = bytesOf(text, 1); err != nil {
			return s, fmt.Errorf("%s: %w", column, err)
		}
	}
	return s, nil
}

// setMost sets a field to the most that a step took, by size, of which 0 is none that was measured.
func (j *job) setMost(t *archive.Task, field string, into **uint64, size func(step) uint64) {
	var most, tasks uint64
	for _, s := range j.steps {
		if together := size(s) * s.tasks; together > most {
			most, tasks = together, s.tasks
		}
	}
	if most == 0 {
		return
	}
	*into = &most
	if tasks > 1 {
		measured(t, account.Bound, "that of the largest task, times the number of tasks", field)
	} else {
		measured(t, account.Sampled, "", field)
	}
}
