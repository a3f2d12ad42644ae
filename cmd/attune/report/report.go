// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/tunlets/sdk/recording"
)

// Command returns `attune report`.
func Command(p *cli.Env) *cobra.Command {
	var asJSON bool
	var page string
	cmd := &cobra.Command{
		Use:   "report [flags] RECORDING",
		Short: "Show the report of a recorded run",
		Long: `Report makes the report of a run from its recording, which attune run --record
has written: the same that was printed then. Of a recording that is cut off it
shows what there is, and fails.`,
		Example: "  attune run --record storm.rec -- ./my-program\n  attune report --json storm.rec | jq .changes",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exitcode.UsageError(errors.New("the name of one recording is needed"), "make one with attune run --record FILE")
			}
			return showRecorded(p, args[0], asJSON, page)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the JSON document")
	cmd.Flags().StringVar(&page, "html", "", "write the page that attune run --html makes to `FILE`")
	return cmd
}

func showRecorded(p *cli.Env, path string, asJSON bool, page string) error {
	file, err := os.Open(path)
	if err != nil {
		return exitcode.UsageError(err, "name a recording")
	}
	defer file.Close()
	r, err := recording.NewReader(file)
	if err != nil {
		remedy := "attune run --record FILE makes a recording"
		if errors.Is(err, recording.ErrVersion) {
			remedy = "use the attune that made it, or record again"
		}
		return &exitcode.Error{Code: exitcode.Failure, Err: fmt.Errorf("%s: %w", path, err), Remedy: remedy}
	}
	defer r.Close()
	account, broken := fold.Recording(r)
	recorded := account.Report(account.At())
	if asJSON {
		err = recorded.EncodeJSON(p.Stdout)
	} else {
		err = recorded.WriteText(p.Stdout, report.TextOptions{})
	}
	if page != "" {
		err = errors.Join(err, recorded.WritePage(page))
	}
	return errors.Join(err, broken)
}
