// SPDX-License-Identifier: Apache-2.0

package catalogue

import "github.com/attune-hpc/attune/bench/internal/measure"

// goCases are about Go's collector.
func goCases() []Case {
	command := []string{"{bin}/go_garbage", "{seconds}"}
	return []Case{{
		Name: "go-gc/Go", Tunlet: "go-gc", Unit: "it/s", Format: measure.Native(),
		Sources: []Source{{Name: "go_garbage", Compiler: "go", Flags: []string{"-ldflags=-s -w"}}},
		Command: command, Best: Static{Command: append(command[:2:2], "400")},
	}}
}
