// SPDX-License-Identifier: Apache-2.0

// Command promises verifies what README.md promises: it runs the command of each
// row of the table "What it promises" in its quick form, and prints each goal
// beside what was measured. It fails if a promise is not kept.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/attune-hpc/attune/bench/internal/present"
)

func main() { os.Exit(run()) }

func run() int {
	only := flag.String("run", "", "only promises whose commands match this `REGEXP`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	kept, err := verify(ctx, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "promises:", err)
	}
	if err != nil || !kept {
		return 1
	}
	return 0
}

// verify reports whether all promises are kept. An error means that they were
// not all looked at.
func verify(ctx context.Context, only string) (bool, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return false, err
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		return false, err
	}
	promises, err := parse(string(text))
	if err != nil {
		return false, fmt.Errorf("README.md: %w", err)
	}
	dir, err := os.MkdirTemp("", "attune-promises-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	var all []outcome
	for i, p := range promises {
		if !pattern.MatchString(p.command) {
			continue
		}
		fmt.Fprintf(os.Stderr, "\n%d of %d: %s\n%s\n", i+1, len(promises), p.text, p.command)
		all = append(all, p.verify(ctx, dir))
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
	if len(all) == 0 {
		return false, fmt.Errorf("no promise has a command that matches %q", only)
	}
	return summarise(all, time.Since(began)), nil
}

// summarise prints the table, and reports whether all promises are kept.
func summarise(all []outcome, took time.Duration) bool {
	broken := 0
	var table present.Table
	table.Row("promise and goal", "measured", "promised", "verdict")
	for _, o := range all {
		o.tabulate(&table)
		if o.err != nil {
			broken++
		}
	}
	fmt.Println()
	table.Print(os.Stdout)
	fmt.Printf("\n%d of %d promises kept, verified in %v\n", len(all)-broken, len(all), took.Round(time.Second))
	return broken == 0
}
