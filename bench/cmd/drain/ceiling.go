// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/attune-hpc/attune/bench/internal/emptyprobe"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/bpf/uprobe"
)

// kernelFunction is what only uprobes can watch.
const kernelFunction = "kernel_function"

// ceiling measures how many hits of an empty uprobe a program can make.
type ceiling struct {
	program string
	probe   *emptyprobe.Probe
	missing error // why uprobes cannot be had
}

// newCeiling returns one for a program. The caller must close it.
func newCeiling(program string) (*ceiling, error) {
	uprobes, err := uprobe.New(uprobe.Options{})
	if errors.Is(err, bpf.ErrUnsupported) {
		return &ceiling{missing: err}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := uprobes.Close(); err != nil {
		return nil, err
	}
	probe, err := emptyprobe.New(emptyprobe.Multi)
	return &ceiling{program: program, probe: probe}, err
}

// measure returns hits a second, in one run of the program alone.
func (c *ceiling) measure(ctx context.Context) (float64, error) {
	attached, err := c.probe.Attach(c.program, kernelFunction)
	if err != nil {
		return 0, err
	}
	result, err := measure.Run(ctx, command(c.program, floodRate))
	if err := errors.Join(err, attached.Close()); err != nil {
		return 0, err
	}
	made, err := said(result)
	return float64(made.Hits) / seconds, err
}

func (c *ceiling) close() {
	if c.probe != nil {
		_ = c.probe.Close() // nothing is attached
	}
}
