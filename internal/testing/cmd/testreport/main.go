// SPDX-License-Identifier: Apache-2.0

// Command testreport summarises a run of the test suite from what its steps
// wrote: the time of each step, the slowest tests, every skip, every failure.
//
//	testreport FOLDER ALLOWED
//
// FOLDER holds a file `steps`, a line per step (see step), and the events of
// `go test -json` in any file below it whose name ends in .json. ALLOWED lists
// the skips that are known (see allowance). It ends with 1 when a step or a test
// failed, when a test was skipped that is not listed, or when no test ran.
package main

import (
	"fmt"
	"os"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: testreport FOLDER ALLOWED")
		return 2
	}
	report, err := read(args[0], args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		return 2
	}
	report.write(os.Stdout)
	if !report.passed() {
		return 1
	}
	return 0
}
