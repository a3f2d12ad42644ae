// SPDX-License-Identifier: Apache-2.0

package masterworker

// Program is what the options say that every such tunlet has. Embed it in the struct of the
// tunlet's options ([sdk.OptionsOf]), beside a field for the variable.
type Program struct {
	Object   string `option:"object" doc:"base name of the program or library that defines the variable and the functions, or a pattern; empty: whichever does"`
	Round    string `option:"round" required:"true" doc:"function that the master calls once in a round"`
	Dispatch string `option:"dispatch" required:"true" doc:"function that hands work to a worker, called once for each piece"`
	Task     string `option:"task" required:"true" doc:"function in which a worker does a piece of work"`
}

// function is the one that a kind of measure points is for.
func (p Program) function(kind string) string {
	switch kind {
	case kindRound:
		return p.Round
	case kindDispatch:
		return p.Dispatch
	}
	return p.Task
}

// objectPattern is the pattern of the object's base name.
func (p Program) objectPattern() string {
	if p.Object == "" {
		return "*"
	}
	return p.Object
}
