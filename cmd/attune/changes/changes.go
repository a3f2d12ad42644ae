// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/byhand"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/inforce"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/printable"
)

// Command returns `attune changes`.
func Command(p *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "changes",
		Short: "List what is changed in running processes of this node",
		Long: `Changes lists what is changed in your processes on this node, with old and new value:
what you have changed with attune tune and not undone, what your running attune run has
changed, and what the node's service has. For root it lists those in all processes.
BY says who takes a change back: attune undo what was made by hand, a run its own at its
end (attune undo --all where it was killed), and attune session stop what a session has
made. Changes of processes that have ended are gone with them, those of a cgroup are not.`,
		Example: "  attune changes\n  attune changes --json | jq '.[] | select(.knob == \"thread.nice\")'",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			changes, err := inforce.List(cmd.Context())
			if asJSON {
				return errors.Join(p.WriteJSON(changes), err)
			}
			return errors.Join(writeChanges(p, changes), err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func writeChanges(p *cli.Env, changes []actuate.InForce) error {
	if len(changes) == 0 {
		return p.Nothing("is changed")
	}
	w := cli.Table(p.Stdout)
	fmt.Fprintln(w, "ID\tPROCESS\tPROGRAM\tKNOB\tWHERE\tOLD\tNEW\tSINCE\tBY")
	for _, c := range changes {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", printable.Line(c.ID), c.PID, procs.Name(c.PID),
			printable.Line(c.Knob), printable.Line(c.Where), printable.Line(c.Old), printable.Line(c.New), c.Since.Local().Format(time.DateTime), printable.Line(by(c)))
	}
	return w.Flush()
}

// by says who has made a change.
func by(c actuate.InForce) string {
	switch {
	case c.By == "":
		return "hand"
	case c.Registration != "":
		return "session " + c.Registration
	case c.By == inforce.ByService:
		return c.By
	}
	return "attune " + c.By
}

// Undoing returns `attune undo`.
func Undoing(p *cli.Env) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "undo ID... | --all",
		Short: "Put back what attune tune has changed",
		Long: `Undo puts the old values of changes back that attune tune has made, the latest
first. A value that somebody else has changed since is left as it is, and said
so. What attune run or attach has changed it takes back itself; where it was killed,
undo --all does.`,
		Example:           "  attune undo 3\n  attune undo --all",
		ValidArgsFunction: completeUndo,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if all == (len(ids) > 0) {
				return exitcode.UsageError(errors.New("give either ids or --all"), "see `attune changes`")
			}
			if all {
				return byhand.UndoAll(cmd.Context(), p)
			}
			kept, err := byhand.Open(cmd.Context())
			if err != nil {
				return err
			}
			return errors.Join(byhand.Undo(p, kept, ids), kept.Close())
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "undo every change")
	return cmd
}

func completeUndo(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	changes, _ := inforce.List(cmd.Context()) // what there is
	var ids []string
	for _, c := range changes {
		if c.By == "" && !strings.Contains(" "+strings.Join(given, " ")+" ", " "+c.ID+" ") {
			ids = append(ids, printable.Line(c.ID)+"\t"+printable.Line(fmt.Sprintf("%s of %d: %s → %s", c.Knob, c.PID, c.Old, c.New)))
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
