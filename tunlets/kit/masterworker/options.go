// SPDX-License-Identifier: Apache-2.0

package masterworker

import (
	"slices"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// program is what the options say that every such tunlet has; see [sdk.OptionsOf].
type program struct {
	Object   string `option:"object" doc:"base name of the program or library that defines the names below, or a pattern; empty: whichever does"`
	Variable string `option:"variable" required:"true"`
	Round    string `option:"round" required:"true" doc:"function that the master calls once in a round"`
	Dispatch string `option:"dispatch" required:"true" doc:"function that hands work to a worker, called once for each piece"`
	Task     string `option:"task" required:"true" doc:"function in which a worker does a piece of work"`
}

// Options lists the options that say what the parts of the program are; variable
// says what the variable stands for.
func Options(variable string) []sdk.Option {
	options := sdk.OptionsOf[program]()
	at := slices.IndexFunc(options, func(o sdk.Option) bool { return o.Name == "variable" })
	options[at].Description = variable
	return options
}

// configured says that all is known; a tunlet is not started before, but the
// harness and a replay do.
func (p program) configured() bool {
	return p.Variable != "" && p.Round != "" && p.Dispatch != "" && p.Task != ""
}

// function is the one that a kind of measure points is for.
func (p program) function(kind string) string {
	switch kind {
	case kindRound:
		return p.Round
	case kindDispatch:
		return p.Dispatch
	}
	return p.Task
}

// objectPattern is the pattern of the object's base name.
func (p program) objectPattern() string {
	if p.Object == "" {
		return "*"
	}
	return p.Object
}
