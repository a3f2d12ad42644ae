// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/quantity"
)

func newQuery(p *cli.Env) *cobra.Command {
	var of pick
	var fields []string
	var quantiles []float64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "query [flags] [CATEGORY]",
		Short: "Show how what tasks took is distributed",
		Long: `Query shows for each field the number of tasks that have it, least, mean and most,
what they are together where that adds up (with --job what the job took), standard
deviation, skewness and kurtosis (less the 3 of a normal distribution), quantiles, and a
histogram. Fields are

` + wrap(archive.Fields()),
		Example: "  attune archive query align\n  attune archive query --field memory.resident_peak_bytes --quantile 0.5,0.95 --since 30d\n" +
			"  attune archive query --job 4711 --field cpu_seconds,io.written_bytes,processes.total",
		Args:              cli.Arguments(0, 1),
		ValidArgsFunction: completeCategory,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, q := range quantiles {
				if !(q >= 0 && q <= 1) {
					return exitcode.UsageError(fmt.Errorf("--quantile: %v is not between 0 and 1", q), "0.95 is the 95th percentile")
				}
			}
			for _, field := range fields {
				if !slices.Contains(archive.Fields(), field) {
					return exitcode.UsageError(fmt.Errorf("--field: there is no field %q", field), "there are "+strings.Join(archive.Fields(), ", "))
				}
			}
			return withArchive(cmd, func(s *archive.Store) error {
				all := []archive.Distribution{}
				for _, field := range fields {
					values, err := s.Values(cmd.Context(), of.filter(args), field)
					if err != nil {
						return err
					}
					all = append(all, archive.Describe(field, values, quantiles...))
				}
				if asJSON {
					return p.WriteJSON(all)
				}
				return writeDistributions(p, all)
			})
		},
	}
	of.add(cmd)
	cmd.Flags().StringSliceVar(&fields, "field", []string{"wall_seconds", "cpu_seconds", "cores_average", "memory.resident_peak_bytes", "io.read_bytes", "io.written_bytes"}, "`FIELD`s to show")
	cmd.Flags().Float64SliceVar(&quantiles, "quantile", []float64{0.05, 0.25, 0.5, 0.75, 0.95}, "`PART`s of the tasks, 0 to 1")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cli.MustComplete(cmd, "field", archive.Fields)
	return cmd
}

// wrap writes words in lines, each indented.
func wrap(words []string) string {
	var out strings.Builder
	width := 0
	for _, word := range words {
		if width+len(word) > 84 || width == 0 {
			if width > 0 {
				out.WriteByte('\n')
			}
			out.WriteByte(' ')
			width = 1
		}
		out.WriteString(" " + word)
		width += len(word) + 1
	}
	return out.String()
}

// barWidth is that of the longest bar of a histogram, characters.
const barWidth = 40

func writeDistributions(p *cli.Env, all []archive.Distribution) error {
	none := true
	for _, d := range all {
		if d.Tasks == 0 {
			continue
		}
		none = false
		say := func(v float64) string { return quantity.Field(d.Field, v) }
		fmt.Fprintf(p.Stdout, "%s of %d tasks\n", d.Field, d.Tasks)
		fmt.Fprintf(p.Stdout, "  least %s, mean %s, most %s", say(d.Least), say(d.Mean), say(d.Most))
		if d.Sum != nil {
			fmt.Fprintf(p.Stdout, ", together %s", say(*d.Sum))
		}
		if d.Deviation != nil {
			fmt.Fprintf(p.Stdout, "; deviation %s", say(*d.Deviation))
		}
		if d.Skewness != nil && d.Kurtosis != nil {
			fmt.Fprintf(p.Stdout, ", skewness %.2f, kurtosis %.2f", *d.Skewness, *d.Kurtosis)
		}
		var parts []string
		for _, q := range d.Quantiles {
			parts = append(parts, fmt.Sprintf("%g %%: %s", 100*q.At, say(q.Value)))
		}
		if parts != nil {
			fmt.Fprintf(p.Stdout, "\n  %s", strings.Join(parts, ", "))
		}
		fmt.Fprintln(p.Stdout)
		if err := writeHistogram(p, d, say); err != nil {
			return err
		}
	}
	if none {
		return &exitcode.Error{Code: exitcode.Failure, Err: errors.New("no task of the archive has these fields"), Remedy: "see `attune archive list`"}
	}
	return nil
}

func writeHistogram(p *cli.Env, d archive.Distribution, say func(float64) string) error {
	most := 1
	for _, b := range d.Histogram {
		most = max(most, b.Tasks)
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 8, 1, ' ', 0)
	for _, b := range d.Histogram {
		fmt.Fprintf(w, "  %s\tto\t%s\t%d\t%s\n", say(b.From), say(b.To), b.Tasks, strings.Repeat("█", (b.Tasks*barWidth+most-1)/most))
	}
	return w.Flush()
}
