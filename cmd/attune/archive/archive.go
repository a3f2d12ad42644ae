// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/archived"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/printable"
)

const long = `Archive shows what earlier tasks took, and says what the next one will need. The
accounts are in archive.db in the state directory ($XDG_STATE_HOME/attune, else
~/.local/state/attune, for root /var/lib/attune), which you alone can read, or where
--archive-at, ATTUNE_ARCHIVE_AT or archive-at in attune.yaml says: another file, or a
site's PostgreSQL database. They are those of attune account --archive, and those of
other tools that attune archive import has brought in.

Tasks of one CATEGORY are the same program with the same arguments but for numbers and
names of files. A category is named by its id (six digits of it are enough), or by the
name that its tasks have; attune archive list --categories shows both.`

// Command returns `attune archive`.
func Command(p *cli.Env) *cobra.Command {
	cmd := cli.Group(&cobra.Command{Use: "archive", Short: "Show what earlier tasks took, and what the next one needs", Long: long},
		newList(p), newShow(p), newQuery(p), newEstimate(p), newReport(p), newImport(p), newExport(p))
	archived.AddFlag(cmd.PersistentFlags())
	return cmd
}

// withArchive opens the archive for a command, and says of what is not in it where to
// look.
func withArchive(cmd *cobra.Command, do func(*archive.Store) error) error {
	err := archived.With(cmd.Context(), cmd.Flags(), do)
	switch {
	case errors.Is(err, archive.ErrUnknown) || errors.Is(err, archive.ErrAmbiguous):
		return &exitcode.Error{Code: exitcode.Failure, Err: err, Remedy: "see `attune archive list`"}
	case errors.Is(err, archived.ErrNotSent): // by others, earlier: this command is done
		fmt.Fprintf(cmd.ErrOrStderr(), "attune: %v\n", err)
		return nil
	}
	return err
}

// pick says which tasks are meant.
type pick struct {
	since             cli.Span
	source, job       string
	failed, succeeded bool
}

func (k *pick) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(&k.since, "since", "only tasks that ended in the last `TIME`, as 90m, 48h or 30d")
	flags.StringVar(&k.source, "source", "", "only tasks that `NAME` has measured: attune, cctools, kickstart, slurm, nextflow or time")
	flags.StringVar(&k.job, "job", "", "only tasks of the job `ID` of a batch system")
	flags.BoolVar(&k.failed, "failed", false, "only tasks that failed")
	flags.BoolVar(&k.succeeded, "succeeded", false, "only tasks that succeeded")
	cmd.MarkFlagsMutuallyExclusive("failed", "succeeded")
}

// filter is that of the flags, and of the category that the arguments may name.
func (k *pick) filter(args []string) archive.Filter {
	f := archive.Filter{Source: k.source, Job: k.job, Failed: k.failed, Succeeded: k.succeeded}
	if len(args) > 0 {
		f.Category = args[0]
	}
	if k.since > 0 {
		f.Since = time.Now().Add(-time.Duration(k.since))
	}
	return f
}

// completeCategory completes the first argument.
func completeCategory(cmd *cobra.Command, given []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	err := archived.With(cmd.Context(), cmd.Flags(), func(s *archive.Store) error {
		all, err := s.Categories(cmd.Context(), archive.Filter{})
		for _, c := range all {
			names = append(names, fmt.Sprintf("%s\t%s", printable.Line(c.Name), printable.Line(c.Pattern)))
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
