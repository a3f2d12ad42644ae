// SPDX-License-Identifier: Apache-2.0

// Command gen writes hooks.go of package shm from dmlib_hooks.def. It is run
// by go generate, in the folder of that package.
package main

import (
	"fmt"
	"os"

	"github.com/attune-hpc/attune/controller/shm/internal/hookdef"
)

func main() { os.Exit(run()) }

func run() int {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gen dmlib_hooks.def hooks.go")
		return 2
	}
	if err := generate(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		return 1
	}
	return 0
}

func generate(from, to string) error {
	def, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	source, err := hookdef.Generate(def)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, source, 0o644)
}
