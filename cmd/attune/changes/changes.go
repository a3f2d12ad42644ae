// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/byhand"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/kinds"
	"github.com/attune-hpc/attune/controller/node"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/rundir"
)

// Command returns `attune changes`.
func Command(p *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "changes",
		Short: "List what is changed in running processes of this node",
		Long: `Changes lists what you have changed with attune tune and not undone, and what
your running attune run has changed, with old and new value; for root also what
attuned has changed for its sessions, if its state-dir is the usual one. Changes of
processes that have ended are gone with them, those of a cgroup are not.`,
		Example: "  attune changes\n  attune changes --json | jq '.[] | select(.knob == \"thread.nice\")'",
		Args:    cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			changes, err := inForce()
			if err != nil {
				return err
			}
			if asJSON {
				encoder := json.NewEncoder(p.Stdout)
				encoder.SetIndent("", "  ")
				return encoder.Encode(changes)
			}
			return writeChanges(p, changes)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// byService is who has made a change of the service, of which each session has a journal.
const byService = "attuned"

// inForce reads this user's journals, root's with those of the service; never nil.
func inForce() ([]actuate.InForce, error) {
	dir, err := rundir.Current().LastingStateDir()
	if err != nil {
		return nil, err
	}
	return inForceBelow(dir)
}

// inForceBelow reads the journals in a state directory, and those of the service that
// has the same one.
func inForceBelow(dir string) ([]actuate.InForce, error) {
	known := kinds.All(kinds.Options{})
	own, err := known.Changes(dir)
	services, serviceErr := known.Changes(filepath.Join(dir, node.JournalFolder))
	for i := range services {
		services[i].By = byService
	}
	return append(append([]actuate.InForce{}, own...), services...), errors.Join(err, serviceErr)
}

func writeChanges(p *cli.Env, changes []actuate.InForce) error {
	if len(changes) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tPROCESS\tPROGRAM\tKNOB\tWHERE\tOLD\tNEW\tSINCE\tBY")
	for _, c := range changes {
		by := c.By
		switch by {
		case "":
			by = "hand"
		case byService:
		default:
			by = "attune " + by
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, c.PID, procs.Name(c.PID),
			c.Knob, c.Where, c.Old, c.New, c.Since.Local().Format(time.DateTime), by)
	}
	return w.Flush()
}

// Undoing returns `attune undo`.
func Undoing(p *cli.Env) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "undo ID... | --all",
		Short: "Put back what attune tune has changed",
		Long: `Undo puts the old values of changes back that attune tune has made, the latest
first. A value that somebody else has changed since is left as it is, and said
so. What attune run has changed it takes back itself.`,
		Example:           "  attune undo 3\n  attune undo --all",
		ValidArgsFunction: completeUndo,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if all == (len(ids) > 0) {
				return exitcode.UsageError(errors.New("give either ids or --all"), "see `attune changes`")
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

func completeUndo(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	changes, err := inForce()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, c := range changes {
		if c.By == "" && !strings.Contains(" "+strings.Join(given, " ")+" ", " "+c.ID+" ") {
			ids = append(ids, fmt.Sprintf("%s\t%s of %d: %s → %s", c.ID, c.Knob, c.PID, c.Old, c.New))
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
