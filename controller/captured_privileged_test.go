// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"testing"
)

// TestCapturedByTheKernel runs the table of TestCaptured in the BPF programs,
// each third row in a short run.
func TestCapturedByTheKernel(t *testing.T) {
	program := buildCaptured(t)
	for i, row := range capturedRows() {
		if row.hook || row.real {
			continue // the kernel has neither
		}
		if testing.Short() && i%3 != 0 {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			testCaptured(t, program, row, false, "uprobe_multi", "uprobe")
		})
	}
}

// TestIntervalsByTheKernel runs the table of TestIntervals there.
func TestIntervalsByTheKernel(t *testing.T) {
	program := buildCaptured(t)
	for _, row := range intervalRows() {
		t.Run(row.name, func(t *testing.T) {
			testIntervals(t, program, row, false, "uprobe_multi", "uprobe")
		})
	}
}
