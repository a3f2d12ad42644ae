// SPDX-License-Identifier: Apache-2.0

// Command quiet measures what Attune costs programs that have no problem: eight
// unmodified programs of the distribution of five to ten seconds each, by
// themselves and under `attune run`, in pairs, with one core busy and with all of
// them. CPU time is that of all processes that Attune starts, by the kernel's
// account of the whole run without the program; so it is right on a busy machine
// as well. The time needs an idle one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/catalogue"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// document is what -json writes.
type document struct {
	benchmark.Common
	Results []*result `json:"results"`
	// Missing are programs that cannot run here, with the reason.
	Missing []string `json:"missing,omitempty"`
}

// each is how many pairs judge a program by itself: of fewer, the median of the
// ratios of times is noise.
const each = 15

func main() {
	pairs := flag.Int("n", each, "pairs of runs of each program, with one core busy and with all")
	only := flag.String("run", "", "only programs whose names match this `REGEXP`")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "quiet", Packages: []string{"libc6", "python3-numpy", "ffmpeg", "nodejs", "git", "perl-base", "g++"}, Quick: benchmark.Quick{"n": "5"}, Document: d,
		Measure: func(ctx context.Context) error {
			pattern, err := regexp.Compile(*only)
			if err != nil {
				return err
			}
			return d.measure(ctx, pattern, *pairs)
		},
	}))
}

func (d *document) measure(ctx context.Context, only *regexp.Regexp, pairs int) error {
	attune := tuned.Attune{Binary: "bin/attune", Scratch: d.Scratch}
	if _, err := attune.Run(ctx, []string{"true"}); err != nil { // asks the tunlets what they are
		return err
	}
	repository, err := filepath.Abs(filepath.Join(workload.Repository.Cache, "quiet.git"))
	if err != nil {
		return err
	}
	if err := makeRepository(ctx, repository); err != nil {
		return fmt.Errorf("make a repository for git: %w", err)
	}
	for _, c := range programs(repository) {
		if !only.MatchString(c.Name) {
			continue
		}
		p, missing := c.Prepare(ctx, workload.Repository)
		if missing != "" {
			d.Missing = append(d.Missing, c.Name+": "+missing)
			continue
		}
		if err := d.measureProgram(ctx, attune, p, pairs); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

// measureProgram measures a program where it has the other cores for itself and
// Attune, and where every core is busy.
func (d *document) measureProgram(ctx context.Context, attune tuned.Attune, p catalogue.Program, pairs int) error {
	for _, busy := range []bool{false, true} {
		r := &result{Name: p.Name, Busy: busy}
		d.Results = append(d.Results, r)
		if err := r.measure(ctx, attune, p, pairs); err != nil {
			return err
		}
	}
	return nil
}
