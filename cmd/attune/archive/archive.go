// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/archived"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/archive/report"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/quantity"
)

const long = `Archive shows what earlier tasks took, and says what the next one will need. The
accounts are in archive.db in the state directory ($XDG_STATE_HOME/attune, else
~/.local/state/attune), which you alone can read: those of attune account --archive,
and those of other tools that attune archive import has brought in.

Tasks of one CATEGORY are the same program with the same arguments but for numbers and
names of files. A category is named by its id (six digits of it are enough), or by the
name that its tasks have; attune archive list --categories shows both.`

// Command returns `attune archive`.
func Command(p *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "archive",
		Short: "Show what earlier tasks took, and what the next one needs",
		Long:  long,
		Args:  cli.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newList(p), newShow(p), newQuery(p), newEstimate(p), newReport(p), newImport(p), newExport(p))
	return cmd
}

// withArchive opens the archive for a command, and says of what is not in it where to
// look.
func withArchive(ctx context.Context, do func(*archive.Store) error) error {
	err := archived.With(ctx, do)
	if errors.Is(err, archive.ErrUnknown) || errors.Is(err, archive.ErrAmbiguous) {
		return &exitcode.Error{Code: exitcode.Failure, Err: err, Remedy: "see `attune archive list`"}
	}
	return err
}

// pick says which tasks are meant.
type pick struct {
	since             cli.Span
	source            string
	failed, succeeded bool
}

func (k *pick) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(&k.since, "since", "only tasks that ended in the last `TIME`, as 90m, 48h or 30d")
	flags.StringVar(&k.source, "source", "", "only tasks that `NAME` has measured: attune, cctools, kickstart, slurm, nextflow or time")
	flags.BoolVar(&k.failed, "failed", false, "only tasks that failed")
	flags.BoolVar(&k.succeeded, "succeeded", false, "only tasks that succeeded")
	cmd.MarkFlagsMutuallyExclusive("failed", "succeeded")
}

// filter is that of the flags, and of the category that the arguments may name.
func (k *pick) filter(args []string) archive.Filter {
	f := archive.Filter{Source: k.source, Failed: k.failed, Succeeded: k.succeeded}
	if len(args) > 0 {
		f.Category = args[0]
	}
	if k.since > 0 {
		f.Since = time.Now().Add(-time.Duration(k.since))
	}
	return f
}

func newList(p *cli.Env) *cobra.Command {
	var of pick
	var limit uint
	var categories, asJSON bool
	cmd := &cobra.Command{
		Use:               "list [flags] [CATEGORY]",
		Short:             "List tasks, the latest first, or their categories",
		Example:           "  attune archive list --failed --since 7d\n  attune archive list --categories",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeCategory,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withArchive(cmd.Context(), func(s *archive.Store) error {
				f := of.filter(args)
				if categories {
					all, err := s.Categories(cmd.Context(), f)
					if err != nil {
						return err
					}
					return writeCategories(p, all, asJSON)
				}
				f.Limit = int(limit)
				all, err := s.List(cmd.Context(), f)
				if err != nil {
					return err
				}
				return writeTasks(p, all, asJSON)
			})
		},
	}
	of.add(cmd)
	cmd.Flags().UintVar(&limit, "limit", 50, "only the latest `N` tasks; 0: all")
	cmd.Flags().BoolVar(&categories, "categories", false, "list the categories")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// encodeJSON prints a document.
func encodeJSON(p *cli.Env, document any) error {
	encoder := json.NewEncoder(p.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

func writeTasks(p *cli.Env, all []archive.Summary, asJSON bool) error {
	if asJSON {
		return encodeJSON(p, append([]archive.Summary{}, all...))
	}
	if len(all) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tENDED\tNAME\tEXIT\tTIME\tCPU\tMEMORY\tREAD\tWRITTEN\tSOURCE\tCATEGORY\tCOMMAND")
	for _, t := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID[:8], t.End.Local().Format(time.DateTime), report.Clean(t.Name), exitText(t),
			number(&t, "wall_seconds"), number(&t, "cpu_seconds"), memoryText(&t), number(&t, "io.read_bytes"), number(&t, "io.written_bytes"),
			t.Source, t.Category[:8], report.Clean(t.Pattern))
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
	return report.Clean(t.Exit)
}

func writeCategories(p *cli.Env, all []archive.Category, asJSON bool) error {
	if asJSON {
		return encodeJSON(p, append([]archive.Category{}, all...))
	}
	if len(all) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "CATEGORY\tNAME\tTASKS\tFAILED\tTIME\tLAST\tCOMMAND")
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", c.ID[:8], report.Clean(c.Name), c.Tasks, c.Failed, quantity.Seconds(c.WallSeconds),
			c.Last.Local().Format(time.DateTime), report.Clean(c.Pattern))
	}
	return w.Flush()
}

func newShow(p *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show the account of a task",
		Example: "  attune archive show 3fb1\n  attune archive show --json 3fb1 | jq .account.tree",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withArchive(cmd.Context(), func(s *archive.Store) error {
				id, err := s.Find(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				t, err := s.Task(cmd.Context(), id)
				if err != nil {
					return err
				}
				if asJSON {
					return encodeJSON(p, t)
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
	w := tabwriter.NewWriter(p.Stdout, 0, 8, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, report.Clean(value))
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
	if a.Exit.Code != nil {
		exit = fmt.Sprint("code ", *a.Exit.Code)
	}
	row("exit", strings.TrimSpace(exit+" "+a.Exit.Signal+" "+strings.Join(a.Exit.Limits, ", ")))
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

// completeCategory completes the first argument.
func completeCategory(cmd *cobra.Command, given []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	err := archived.With(cmd.Context(), func(s *archive.Store) error {
		all, err := s.Categories(cmd.Context(), archive.Filter{})
		for _, c := range all {
			names = append(names, fmt.Sprintf("%s\t%s", report.Clean(c.Name), report.Clean(c.Pattern)))
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
