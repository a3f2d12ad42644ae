// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/archive/report"
	"github.com/attune-hpc/attune/internal/exitcode"
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
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeCategory,
		RunE: func(cmd *cobra.Command, args []string) error {
			directive, known := directives[batch]
			if batch != "" && !known {
				return exitcode.UsageError(fmt.Errorf("--for %s: no such batch system", batch), "there are "+strings.Join(batchSystems(), ", "))
			}
			return withArchive(cmd.Context(), func(s *archive.Store) error {
				e, err := s.Estimate(cmd.Context(), args[0], float64(input))
				switch {
				case err != nil:
					return err
				case asJSON:
					return encodeJSON(p, e)
				case batch != "":
					fmt.Fprint(p.Stdout, directive(e))
				default:
					writeEstimate(p, e)
				}
				return nil
			})
		},
	}
	cmd.Flags().Uint64Var(&input, "input-bytes", 0, "size of the input of the next task, in `BYTES`")
	cmd.Flags().StringVar(&batch, "for", "", "print it as `BATCH-SYSTEM` wants it: "+strings.Join(batchSystems(), ", "))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("for", "json")
	cli.MustComplete(cmd, "for", batchSystems)
	return cmd
}

func writeEstimate(p *cli.Env, e *archive.Estimate) {
	fmt.Fprintf(p.Stdout, "for the next task of %s, from %d that succeeded", report.Clean(e.Category), e.Tasks)
	if e.LeftOut > 0 {
		fmt.Fprintf(p.Stdout, " (%d failed)", e.LeftOut)
	}
	fmt.Fprintln(p.Stdout)
	row := func(name string, a *archive.Amount, say func(float64) string) {
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

// directives write an estimate as a batch system wants it, with the reasons as comments.
var directives = map[string]func(*archive.Estimate) string{
	"slurm": func(e *archive.Estimate) string {
		return lines(e, "# ", "#SBATCH --mem=%dM", "#SBATCH --cpus-per-task=%d", func(s int64) string { return "#SBATCH --time=" + clockTime(s) }, "#SBATCH --tmp=%dM")
	},
	"htcondor": func(e *archive.Estimate) string {
		return lines(e, "# ", "request_memory = %d MB", "request_cpus = %d", func(s int64) string { return fmt.Sprintf("allowed_execute_duration = %d", s) }, "request_disk = %d MB")
	},
	"gridengine": gridEngine,
	"nextflow": func(e *archive.Estimate) string {
		body := lines(e, "// ", "memory = %d.MB", "cpus = %d", func(s int64) string { return fmt.Sprintf("time = %d.s", s) }, "disk = %d.MB")
		name := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(report.Clean(e.Category))
		return "process {\n    withName: '" + name + "' {\n" + indent(body, 8) + "    }\n}\n"
	},
	"snakemake": func(e *archive.Estimate) string {
		reasons, rows := comments(e, "# "), ""
		if e.Cores != nil {
			rows = fmt.Sprintf("threads: %.0f\n", e.Cores.Value)
		}
		var resources []string
		if e.MemoryBytes != nil { // megabytes of 10^6
			resources = append(resources, fmt.Sprintf("mem_mb=%d", ceil(e.MemoryBytes.Value, 1e6)))
		}
		if e.DiskBytes != nil {
			resources = append(resources, fmt.Sprintf("disk_mb=%d", ceil(e.DiskBytes.Value, 1e6)))
		}
		if e.WallSeconds != nil { // minutes
			resources = append(resources, fmt.Sprintf("runtime=%d", ceil(e.WallSeconds.Value, 60)))
		}
		if len(resources) > 0 {
			rows += "resources:\n    " + strings.Join(resources, ",\n    ") + "\n"
		}
		return reasons + rows
	},
}

// batchSystems are the names of the directives.
func batchSystems() []string { return slices.Sorted(maps.Keys(directives)) }

// lines writes what is known of memory (MiB), cores, time (seconds) and disk (MiB), a line
// each, after the reasons.
func lines(e *archive.Estimate, comment, memory, cores string, wall func(int64) string, disk string) string {
	const mib = 1 << 20
	out := comments(e, comment)
	if e.MemoryBytes != nil {
		out += fmt.Sprintf(memory+"\n", ceil(e.MemoryBytes.Value, mib))
	}
	if e.Cores != nil {
		out += fmt.Sprintf(cores+"\n", int64(e.Cores.Value))
	}
	if e.WallSeconds != nil {
		out += wall(int64(e.WallSeconds.Value)) + "\n"
	}
	if e.DiskBytes != nil {
		out += fmt.Sprintf(disk+"\n", ceil(e.DiskBytes.Value, mib))
	}
	return out
}

// gridEngine: what is asked for is for each slot there, and how slots of one node are
// called is the site's choice.
func gridEngine(e *archive.Estimate) string {
	perSlot := *e
	cores := 1.0
	if e.Cores != nil {
		cores = e.Cores.Value
	}
	if e.MemoryBytes != nil {
		perSlot.MemoryBytes = &archive.Amount{Value: e.MemoryBytes.Value / cores, Reason: e.MemoryBytes.Reason + "; for each of the slots"}
	}
	perSlot.DiskBytes = nil // no name for it is the same at two sites
	return lines(&perSlot, "# ", "#$ -l h_vmem=%dM", "#$ -pe smp %d", func(s int64) string { return fmt.Sprintf("#$ -l h_rt=%d", s) }, "")
}

// comments are the reasons.
func comments(e *archive.Estimate, mark string) (out string) {
	for _, a := range []struct {
		name string
		*archive.Amount
	}{{"memory", e.MemoryBytes}, {"cores", e.Cores}, {"time", e.WallSeconds}, {"disk", e.DiskBytes}} {
		if a.Amount != nil {
			out += mark + a.name + ": " + report.Clean(a.Reason) + "\n"
		}
	}
	return out
}

// ceil is how many units there are in an amount, the last one begun.
func ceil(amount, unit float64) int64 {
	n := int64(amount / unit)
	if float64(n)*unit < amount {
		n++
	}
	return n
}

// clockTime is Slurm's [days-]hours:minutes:seconds.
func clockTime(seconds int64) string {
	text := fmt.Sprintf("%02d:%02d:%02d", seconds/3600%24, seconds/60%60, seconds%60)
	if days := seconds / 86400; days > 0 {
		text = fmt.Sprintf("%d-%s", days, text)
	}
	return text
}

func indent(text string, by int) string {
	space := strings.Repeat(" ", by)
	return space + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+space) + "\n"
}
