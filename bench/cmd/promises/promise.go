// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/attune-hpc/attune/bench/internal/present"
)

// promise is a row of README.md's table.
type promise struct {
	text    string
	command string // from the repository's folder
}

// heading stands above the table.
const heading = "## What it promises, and how to check it\n"

// row has a promise and, between backquotes, a command.
var row = regexp.MustCompile("^\\| (.+) \\| `(\\S+)` \\|$")

// parse reads the table. One row per command: what a command measures belongs
// to one promise.
func parse(readme string) (promises []promise, err error) {
	_, rest, found := strings.Cut(readme, heading)
	if !found {
		return nil, fmt.Errorf("no heading %q", strings.TrimSpace(heading))
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	seen := map[string]bool{}
	rows := 0
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		if rows++; rows <= 2 { // names of the columns, and the rule below them
			continue
		}
		match := row.FindStringSubmatch(strings.TrimSpace(line))
		if match == nil {
			return nil, fmt.Errorf("not a promise and one command: %q", strings.TrimSpace(line))
		}
		if seen[match[2]] {
			return nil, fmt.Errorf("%s stands beside two promises", match[2])
		}
		seen[match[2]] = true
		promises = append(promises, promise{text: match[1], command: match[2]})
	}
	if len(promises) == 0 {
		return nil, errors.New("the table of promises is empty")
	}
	return promises, nil
}

// outcome is what came of a promise.
type outcome struct {
	promise
	goals []present.Goal
	took  time.Duration
	err   error // why it is not kept
}

// verify runs the command. What it prints goes to standard error.
func (p promise) verify(ctx context.Context, dir string) outcome {
	o := outcome{promise: p}
	file := filepath.Join(dir, filepath.Base(p.command)+".json")
	cmd := exec.CommandContext(ctx, p.command, "-check", "-quick", "-json", file)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	// Whoever is interrupted ends what it has started.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	began := time.Now()
	o.err = cmd.Run()
	o.took = time.Since(began)
	// Without a file nothing was judged; the command has said why.
	if data, err := os.ReadFile(file); err == nil {
		var document struct{ Goals []present.Goal }
		o.err = errors.Join(o.err, json.Unmarshal(data, &document))
		o.goals = document.Goals
	}
	if o.err == nil && len(o.goals) == 0 {
		o.err = errors.New("no goal was checked")
	}
	return o
}

// tabulate adds a promise and its goals.
func (o outcome) tabulate(table *present.Table) {
	verdict := "KEPT"
	if o.err != nil {
		verdict = "BROKEN"
	}
	table.Row(o.command, o.took.Round(time.Second).String(), "", verdict)
	for _, g := range o.goals {
		table.Row("  "+g.Name, g.Measured(), g.Promise(), g.Verdict())
	}
}
