// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/archive/report"
)

func newReport(p *cli.Env) *cobra.Command {
	var of pick
	var page string
	cmd := &cobra.Command{
		Use:   "report [flags] [CATEGORY]",
		Short: "Report what tasks took, what was asked for in vain, and what to ask for",
		Long: `Report shows for each category how what its tasks took is distributed, how much was
used of what was asked for, which tasks are unlike the others, and what to ask for the
next time. With --html it writes a page for a browser, which is one file: it fetches
nothing and runs nothing. The twenty categories whose tasks ran longest are shown whole.`,
		Example:           "  attune archive report\n  attune archive report --since 30d --html tasks.html",
		Args:              cli.Arguments(0, 1),
		ValidArgsFunction: completeCategory,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			place, err := cli.OpenPlace("html", page)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, place.Close()) }()
			return withArchive(cmd, func(s *archive.Store) error {
				r, err := report.Make(cmd.Context(), s, of.filter(args), time.Now())
				if err != nil {
					return err
				}
				if !place.Named() {
					return r.WriteText(p.Stdout)
				}
				return place.Write(func(out io.Writer) error {
					buffered := bufio.NewWriter(out)
					return errors.Join(r.WriteHTML(buffered), buffered.Flush())
				})
			})
		},
	}
	of.add(cmd)
	cmd.Flags().StringVar(&page, "html", "", "write a page to `FILE`")
	return cmd
}
