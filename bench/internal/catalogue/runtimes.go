// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// script is a program of bench/workloads in Debian's Python.
func script(name string, arguments ...string) []string {
	return append([]string{workload.DebianPython, "{src}/" + name + ".py", "{seconds}"}, arguments...)
}

// pythonCases are about the interpreter's collector and its lock.
func pythonCases() []Case {
	yaml := []string{workload.DebianPython, "{src}/python_yaml.py", "60000"} // lines
	return []Case{
		{
			Name: "gc/Python", Tunlet: "gc", Unit: "it/s", Format: measure.Native(),
			Command: script("python_gc"), Best: Static{Command: script("python_gc", "200000")},
		},
		{
			Name: "gc/yaml", Tunlet: "gc", Debian: true,
			Needs:   []Need{{Module: "yaml", Package: "python3-yaml"}},
			Command: yaml, Best: Static{Command: append(yaml[:3:3], "200000")},
		},
		{
			Name: "convoy/Python", Tunlet: "convoy", Unit: "answers/s", Format: measure.Native(),
			Command: script("python_convoy"), Best: Static{Command: script("python_convoy", "0.0002")},
		},
	}
}

// goCases are about Go's collector.
func goCases() []Case {
	command := []string{"{bin}/go_garbage", "{seconds}"}
	return []Case{{
		Name: "go-gc/Go", Tunlet: "go-gc", Unit: "it/s", Format: measure.Native(),
		Sources: []Source{{Name: "go_garbage", Compiler: "go", Flags: []string{"-ldflags=-s -w"}}},
		Command: command, Best: Static{Command: append(command[:2:2], "400")},
	}}
}
