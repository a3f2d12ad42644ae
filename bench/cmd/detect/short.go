// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"sync/atomic"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/controller/discover"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// shortProcesses is how many are started one after the other.
const shortProcesses = 2000

// short is what became of processes that end at once.
type short struct {
	Started int    `json:"started"`
	Found   int    `json:"found"`
	Lost    uint64 `json:"events_lost"`
}

// counter is a discover.Handler that counts.
type counter struct{ found atomic.Int64 }

// Found implements discover.Handler.
func (c *counter) Found(f discover.Found) bool {
	c.found.Add(1)
	if f.Held != nil {
		_ = f.Held.Close() // it is open until here
	}
	return true
}

// Mismatch implements discover.Handler.
func (c *counter) Mismatch(*attunev1.Mismatch) {}

// countShort starts processes that do nothing.
func countShort(ctx context.Context, dir string) (s short, err error) {
	program := filepath.Join(dir, "detected-short")
	if err := measure.CopyProgram("/bin/true", program); err != nil {
		return s, err
	}
	c := new(counter)
	helpers := helpersOf(attuned)
	defer helpers.Close()
	w, err := discover.New(discover.Options{Handler: c, Readers: helpers})
	if err != nil {
		return s, err
	}
	watching, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(watching) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-ended)
	}()
	w.SetRegistrations([]*attunev1.Registration{registration(program)})
	if err := measure.Await(ctx, patience, "registration", func() bool { return w.Status().Registrations == 1 }); err != nil {
		return s, err
	}
	for range shortProcesses {
		if err := exec.CommandContext(ctx, program).Run(); err != nil {
			return s, err
		}
		s.Started++
	}
	// What does not come within patience was missed.
	_ = measure.Await(ctx, patience, "processes", func() bool { return c.found.Load() >= shortProcesses })
	s.Found, s.Lost = int(c.found.Load()), w.Status().Lost
	return s, nil
}
