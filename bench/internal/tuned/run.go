// SPDX-License-Identifier: Apache-2.0

package tuned

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/bench/internal/measure"
)

// Attune is the command under test.
type Attune struct {
	// Binary is its path.
	Binary string
	// Scratch is a folder for its reports and its state; an absolute path.
	Scratch string
	// Flags are added to those of every run.
	Flags []string
	// Settings are added to its environment.
	Settings []string
}

// Run is one run of a program under attune.
type Run struct {
	measure.Result
	// Report is what attune reported of it.
	Report report.Report
}

// CommandLine returns the command line that runs a program under attune, with
// the report in the given file.
func (a Attune) CommandLine(reportFile string, command []string) []string {
	line := append([]string{a.Binary, "run", "--quiet", "--report", reportFile}, a.Flags...)
	return append(append(line, "--"), command...)
}

// ReportFile is where the report of the latest run is.
func (a Attune) ReportFile() string { return filepath.Join(a.Scratch, "report.json") }

// Run runs a program under attune. What earlier runs have learnt is not used: a
// program is tuned as if it had never been seen.
func (a Attune) Run(ctx context.Context, command []string) (Run, error) {
	file := a.ReportFile()
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Run{}, err
	}
	state := filepath.Join(a.Scratch, "state")
	if err := os.RemoveAll(state); err != nil {
		return Run{}, err
	}
	settings := append(slices.Clone(a.Settings), "XDG_STATE_HOME="+state)
	result, err := measure.Run(ctx, a.CommandLine(file, command), settings...)
	if err != nil {
		return Run{}, err
	}
	run := Run{Result: result}
	data, err := os.ReadFile(file)
	if err != nil {
		return run, err
	}
	if err := json.Unmarshal(data, &run.Report); err != nil {
		return run, fmt.Errorf("decode the report: %w", err)
	}
	return run, nil
}
