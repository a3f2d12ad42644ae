// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/directive"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/printable"
	"github.com/attune-hpc/attune/internal/quantity"
)

func newEstimate(p *cli.Env) *cobra.Command {
	var input uint64
	var batch string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "estimate [flags] CATEGORY",
		Short: "Say what the next task will need",
		Long: `Estimate says how much memory, how many cores, how long and how much disk to ask for,
for the next task of a category, and why. Memory and disk are those of the method that
would have cost least for the tasks so far, of several that are run side by side (the
maximum and minimum waste of cctools, Ponder, lines by input size, cheapest offsets):
what was asked for and not used, and the tries that would have failed. Tasks that failed
do not count.`,
		Example:           "  attune archive estimate align\n  attune archive estimate align --input-bytes $(stat -c %s big.bam) --for slurm",
		Args:              cli.Arguments(1, 1),
		ValidArgsFunction: completeCategory,
		RunE: func(cmd *cobra.Command, args []string) error {
			if batch != "" && !slices.Contains(directive.Systems(), batch) {
				return exitcode.UsageError(fmt.Errorf("--for %s: no such batch system", batch), "there are "+strings.Join(directive.Systems(), ", "))
			}
			return withArchive(cmd, func(s *archive.Store) error {
				e, err := s.Estimate(cmd.Context(), args[0], float64(input))
				if err != nil {
					return err
				}
				return writeEstimate(p, e, batch, asJSON)
			})
		},
	}
	cmd.Flags().Uint64Var(&input, "input-bytes", 0, "size of the input of the next task, in `BYTES`")
	cmd.Flags().StringVar(&batch, "for", "", "print it as `BATCH-SYSTEM` wants it: "+strings.Join(directive.Systems(), ", "))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("for", "json")
	cli.MustComplete(cmd, "for", directive.Systems)
	return cmd
}

// writeEstimate writes an estimate in the form that was asked for.
func writeEstimate(p *cli.Env, e *archive.Estimate, batch string, asJSON bool) error {
	switch {
	case asJSON:
		return p.WriteJSON(e)
	case batch != "":
		text, _ := directive.Write(batch, printable.Line(e.Category), e.Need) // it is known
		fmt.Fprint(p.Stdout, text)
	default:
		explainEstimate(p, e)
	}
	return nil
}

// explainEstimate writes each amount with its reason.
func explainEstimate(p *cli.Env, e *archive.Estimate) {
	fmt.Fprintf(p.Stdout, "for the next task of %s, from %d that succeeded", printable.Line(e.Category), e.Tasks)
	if e.LeftOut > 0 {
		fmt.Fprintf(p.Stdout, " (%d failed)", e.LeftOut)
	}
	fmt.Fprintln(p.Stdout)
	row := func(name string, a *directive.Amount, say func(float64) string) {
		if a == nil {
			fmt.Fprintf(p.Stdout, "%-7s not known: nobody measured it\n", name)
			return
		}
		fmt.Fprintf(p.Stdout, "%-7s %s\n        %s\n", name, say(a.Value), a.Reason)
	}
	row("memory", e.MemoryBytes, quantity.Bytes)
	row("cores", e.Cores, func(v float64) string { return fmt.Sprintf("%.0f", v) })
	row("time", e.WallSeconds, quantity.Seconds)
	row("disk", e.DiskBytes, quantity.Bytes)
}
