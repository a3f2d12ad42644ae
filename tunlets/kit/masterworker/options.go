// SPDX-License-Identifier: Apache-2.0

package masterworker

import (
	"path"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// The options that every such tunlet has.
const (
	OptionObject   = "object"
	OptionVariable = "variable"
	OptionRound    = "round"
	OptionDispatch = "dispatch"
	OptionTask     = "task"
)

// Options lists the options that say what the parts of the program are; variable
// says what the variable stands for.
func Options(variable string) []sdk.Option {
	text := func(name, description string) sdk.Option {
		return sdk.Option{Name: name, Type: sdk.TextOption, Description: description, Required: name != OptionObject}
	}
	return []sdk.Option{
		text(OptionObject, "base name of the program or library that defines the names below, or a pattern; empty: whichever does"),
		text(OptionVariable, variable),
		text(OptionRound, "function that the master calls once in a round"),
		text(OptionDispatch, "function that hands work to a worker, called once for each piece"),
		text(OptionTask, "function in which a worker does a piece of work"),
	}
}

// program is what the options say.
type program struct {
	object, variable, round, dispatch, task string
}

func programFrom(options map[string]string) program {
	return program{
		object: options[OptionObject], variable: options[OptionVariable], round: options[OptionRound],
		dispatch: options[OptionDispatch], task: options[OptionTask],
	}
}

// configured says that all is known; a tunlet is not started before, but the
// harness and a replay do.
func (p program) configured() bool {
	return p.variable != "" && p.round != "" && p.dispatch != "" && p.task != ""
}

// has says whether a process may be part of the program: it runs the object, or
// has it mapped.
func (p program) has(process sdk.Process) bool {
	if p.object == "" || process.Maps(p.object) {
		return true
	}
	ok, err := path.Match(p.object, path.Base(process.Executable))
	return ok && err == nil
}

// objectPattern is what actions take, which need one.
func (p program) objectPattern() string {
	if p.object == "" {
		return "*"
	}
	return p.object
}
