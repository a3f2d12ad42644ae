// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/printable"
	"github.com/attune-hpc/attune/internal/quantity"
)

func newList(p *cli.Env) *cobra.Command {
	var of pick
	var limit uint
	var categories, asJSON bool
	cmd := &cobra.Command{
		Use:               "list [flags] [CATEGORY]",
		Short:             "List tasks, the latest last, or their categories",
		Example:           "  attune archive list --failed --since 7d\n  attune archive list --categories",
		Args:              cli.Arguments(0, 1),
		ValidArgsFunction: completeCategory,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withArchive(cmd, func(s *archive.Store) error {
				f := of.filter(args)
				if categories {
					all, err := s.Categories(cmd.Context(), f)
					if err != nil {
						return err
					}
					return writeCategories(p, f, all, asJSON)
				}
				f.Limit = int(limit)
				all, err := s.List(cmd.Context(), f)
				if err != nil {
					return err
				}
				slices.Reverse(all) // as sessions are listed: what is newest stands above the prompt
				return writeTasks(p, f, all, asJSON)
			})
		},
	}
	of.add(cmd)
	cmd.Flags().UintVar(&limit, "limit", 50, "only the latest `N` tasks; 0: all")
	cmd.Flags().BoolVar(&categories, "categories", false, "list the categories")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// nothing says that there are no tasks of that kind.
func nothing(p *cli.Env, f archive.Filter) error {
	if f.Limit = 0; f != (archive.Filter{}) {
		return p.Nothing("of that kind is archived: attune archive list shows what is")
	}
	return p.Nothing("is archived: attune account --archive and attune archive import do that")
}

func writeTasks(p *cli.Env, f archive.Filter, all []archive.Summary, asJSON bool) error {
	if asJSON {
		return p.WriteJSON(append([]archive.Summary{}, all...))
	}
	if len(all) == 0 {
		return nothing(p, f)
	}
	w := cli.Table(p.Stdout)
	fmt.Fprintln(w, "ID\tENDED\tNAME\tEXIT\tTIME\tCPU\tMEMORY\tREAD\tWRITTEN\tSOURCE\tCATEGORY\tCOMMAND")
	for _, t := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID[:8], t.End.Local().Format(time.DateTime), printable.Line(t.Name), exitText(t),
			number(&t, "wall_seconds"), number(&t, "cpu_seconds"), memoryText(&t), number(&t, "io.read_bytes"), number(&t, "io.written_bytes"),
			t.Source, t.Category[:8], printable.Line(t.Pattern))
	}
	return w.Flush()
}

// number is what a task has in a field, for people; - if that is not known.
func number(t *archive.Summary, field string) string {
	if v, known := t.Numbers[field]; known {
		return quantity.Field(field, v)
	}
	return "-"
}

func memoryText(t *archive.Summary) string {
	if v, known := t.Memory(); known {
		return quantity.Bytes(v)
	}
	return "-"
}

func exitText(t archive.Summary) string {
	if t.Exit == account.ExitNormal && t.ExitCode != nil {
		return fmt.Sprint(*t.ExitCode)
	}
	return printable.Line(t.Exit)
}

func writeCategories(p *cli.Env, f archive.Filter, all []archive.Category, asJSON bool) error {
	if asJSON {
		return p.WriteJSON(append([]archive.Category{}, all...))
	}
	if len(all) == 0 {
		return nothing(p, f)
	}
	w := cli.Table(p.Stdout)
	fmt.Fprintln(w, "CATEGORY\tNAME\tTASKS\tFAILED\tTIME\tLAST\tCOMMAND")
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", c.ID[:8], printable.Line(c.Name), c.Tasks, c.Failed, quantity.Seconds(c.WallSeconds),
			c.Last.Local().Format(time.DateTime), printable.Line(c.Pattern))
	}
	return w.Flush()
}
