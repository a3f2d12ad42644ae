// SPDX-License-Identifier: Apache-2.0

// Package benchmark is what the commands of bench/cmd have in common from their
// flags to their exit code.
package benchmark

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/attune-hpc/attune/bench/internal/present"
)

// Document is what a benchmark has measured. It is encoded as JSON for -json.
type Document interface {
	// Print shows it on standard output, with the goals.
	Print()
}

// Main runs a benchmark and returns its exit code: it parses the flags, to which
// it adds -json, describes the machine, has the document filled in, and shows
// it. The context that measure gets ends at SIGINT and SIGTERM. Errors are shown
// under the benchmark's name.
func Main(name string, machine present.Machine, document Document, measure func(context.Context) error) int {
	file := flag.String("json", "", "also write the figures to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	machine.Print(os.Stdout)
	err := measure(ctx)
	if err == nil {
		document.Print()
		err = present.WriteJSON(*file, document)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}
