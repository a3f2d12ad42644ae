// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/printable"
	"github.com/attune-hpc/attune/internal/quantity"
)

func newShow(p *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show the account of a task",
		Example: "  attune archive show 3fb1\n  attune archive show --json 3fb1 | jq .account.tree",
		Args:    cli.Arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withArchive(cmd, func(s *archive.Store) error {
				id, err := s.Find(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				t, err := s.Task(cmd.Context(), id)
				if err != nil {
					return err
				}
				if asJSON {
					return p.WriteJSON(t)
				}
				return writeTask(p, id, t)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the JSON document")
	return cmd
}

func writeTask(p *cli.Env, id string, t *archive.Task) error {
	a := &t.Account
	w := cli.Table(p.Stdout)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, printable.Line(value))
		}
	}
	row("task", id)
	row("name", t.Name)
	row("command", strings.Join(a.Command, " "))
	row("program", t.Program)
	row("host", a.Host.Name)
	row("job", t.Job)
	row("measured by", t.Source)
	row("start", a.Start.Local().Format(time.DateTime))
	row("end", a.End.Local().Format(time.DateTime))
	exit := a.Exit.Type
	switch {
	case a.Exit.Code != nil:
		exit = fmt.Sprint("code ", *a.Exit.Code)
	case a.Exit.Type == account.ExitSignal:
		exit = "killed by"
	}
	row("exit", strings.TrimSpace(exit+" "+a.Exit.Signal+" "+strings.Join(slices.Concat(a.Exit.Limits, a.Exit.SoftLimits), ", ")))
	for _, field := range archive.Fields() {
		if v, known := t.Number(field); known {
			text := quantity.Field(field, v)
			if accuracy := a.Accuracy[field]; accuracy != "" && accuracy != account.Exact {
				text = strings.TrimSuffix(fmt.Sprintf("%s  (%s: %s", text, accuracy, a.Missing[field]), ": ") + ")"
			}
			row(field, text)
		}
	}
	return w.Flush()
}
