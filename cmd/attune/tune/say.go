// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/printable"
)

// writeFailure says what became of each change, where one could not be made;
// one line is all that the error itself has.
func (t *tuning) writeFailure(p *cli.Env, asJSON bool) error {
	if asJSON {
		return t.write(p, asJSON)
	}
	return writeLines(p, slices.DeleteFunc(slices.Clone(t.lines), func(line Answer) bool {
		return line.State != stateBack && (line.Reason == "" || line.State != StateChanged)
	}))
}

func (t *tuning) write(p *cli.Env, asJSON bool) error {
	if asJSON {
		return p.WriteJSON(t.lines)
	}
	return writeLines(p, t.lines)
}

func writeLines(p *cli.Env, lines []Answer) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(p.Stdout, printable.Lines(line.text())); err != nil {
			return err
		}
	}
	return nil
}

// staying adds to an error of saying what was done that it stays, and how it is taken back. What is
// attended to does not stay.
func (t *tuning) staying(untold error) error {
	var done, ids []string
	for _, line := range t.lines {
		switch {
		case line.State != StateChanged || slices.Contains(t.actuator.Tended(), line.ID):
		case line.ID == "":
			done = append(done, line.Knob)
		default:
			done, ids = append(done, "change "+line.ID), append(ids, line.ID)
		}
	}
	if untold == nil || len(done) == 0 {
		return untold
	}
	err := fmt.Errorf("%w; what was done stays: %s", untold, strings.Join(done, ", "))
	if len(ids) > 0 {
		err = fmt.Errorf("%w; attune undo %s takes changes back", err, strings.Join(ids, " "))
	}
	return err
}
