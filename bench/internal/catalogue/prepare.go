// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/bench/internal/workload"
)

// sampleBytes is the size of {sample}.
const sampleBytes = 256 << 20

// Program is a case that can be run here.
type Program struct {
	Case

	words *strings.Replacer
}

// Prepare builds what a case needs in the folders of programs. Missing says why
// it cannot run here; empty when it can.
func (c Case) Prepare(ctx context.Context, programs workload.Catalogue) (p Program, missing string) {
	p.Case = c
	for _, n := range c.Needs {
		if missing := n.missing(ctx); missing != "" {
			return p, missing
		}
	}
	for _, s := range c.Sources {
		if missing := programs.Build(ctx, s.Compiler, s.Name, s.As, s.Flags...); missing != "" {
			return p, missing
		}
	}
	sample := ""
	if strings.Contains(strings.Join(c.Command, " "), "{sample}") {
		if sample, missing = programs.SampleFile(sampleBytes); missing != "" {
			return p, missing
		}
	}
	p.words = strings.NewReplacer("{bin}", programs.Cache, "{src}", programs.Sources, "{sample}", sample)
	return p, ""
}

func (n Need) missing(ctx context.Context) string {
	if n.Module != "" && workload.MissingModule(ctx, n.Module) {
		return fmt.Sprintf("python's %s is not installed (apt-get install %s)", n.Module, n.Package)
	}
	if _, err := os.Stat(n.File); n.File != "" && err != nil {
		return fmt.Sprintf("%s is missing (apt-get install %s)", n.File, n.Package)
	}
	if n.Command == "" {
		return ""
	}
	return workload.MissingCommand(n.Command, n.Package)
}

// IsControl reports whether the program has no problem.
func (p Program) IsControl() bool { return p.Tunlet == "" }

// Default returns its command line, for a run of the given length if the program
// lets itself be told.
func (p Program) Default(seconds float64) []string { return p.line(p.Command, seconds) }

// BestStatic returns the command line and the environment of the best setting
// that can be given beforehand, and whether there is one.
func (p Program) BestStatic(seconds float64) (command, environment []string, ok bool) {
	command = p.Best.Command
	if len(command) == 0 {
		command = p.Command
	}
	return p.line(command, seconds), p.Best.Environment, p.Best.known()
}

func (p Program) line(words []string, seconds float64) []string {
	line := make([]string, len(words))
	for i, w := range words {
		w = strings.ReplaceAll(w, "{seconds}", strconv.FormatFloat(seconds, 'f', -1, 64))
		line[i] = p.words.Replace(w)
	}
	return line
}
