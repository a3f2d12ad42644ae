// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/bench/internal/catalogue"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	tunlets "github.com/attune-hpc/attune/tunlets/catalogue"
)

// bench runs programs in all variants.
type bench struct {
	options
	attune tuned.Attune
}

// longest is how long a run may take: a program that hangs holds up nobody else.
const longest = 3 * time.Minute

// mostTurns is how often a control is measured at most, in multiples of the turns that it has
// without noise.
const mostTurns = 3

// measure measures one program in turns; a control until it is certain on which side of its
// goal it is, within bounds.
func (b bench) measure(ctx context.Context, p catalogue.Program) (result, error) {
	r := result{Name: p.Name, Tunlet: p.Tunlet, Unit: p.Unit, Debian: p.Debian, Slowed: p.Slowed}
	turns := b.turns(p)
	for i := 0; i < turns || p.IsControl() && i < mostTurns*turns && r.undecided(); i++ {
		if err := b.turn(ctx, p, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// turn measures a program once in each variant, so that a machine that changes its
// speed changes it for all; every second turn is the other way round.
func (b bench) turn(ctx context.Context, p catalogue.Program, r *result) error {
	steps := []func(context.Context, catalogue.Program, *result) error{b.plain, b.tuned, b.best}
	done := len(r.Tuned)
	if done%2 == 1 {
		slices.Reverse(steps)
	}
	fmt.Fprintf(os.Stderr, "%s: turn %d\n", p.Name, done+1)
	for _, step := range steps {
		if err := bounded(ctx, step, p, r); err != nil {
			return err
		}
	}
	return nil
}

// turns is how often a program is measured. One that is judged by itself needs
// more than one that counts in a mean of many.
func (b bench) turns(p catalogue.Program) int {
	if b.inMean > 0 && !b.each && !p.IsControl() {
		return b.inMean
	}
	return b.repeats
}

func bounded(ctx context.Context, step func(context.Context, catalogue.Program, *result) error, p catalogue.Program, r *result) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if err := step(ctx, p, r); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return nil
}

func (b bench) plain(ctx context.Context, p catalogue.Program, r *result) error {
	rate, err := fixed(ctx, p, p.Default(b.plainSeconds))
	r.Default = append(r.Default, rate)
	return err
}

func (b bench) best(ctx context.Context, p catalogue.Program, r *result) error {
	command, environment, ok := p.BestStatic(b.plainSeconds)
	if !ok {
		return nil
	}
	rate, err := fixed(ctx, p, command, environment...)
	r.Best = append(r.Best, rate)
	return err
}

// fixed is the rate of a run without attune.
func fixed(ctx context.Context, p catalogue.Program, command []string, environment ...string) (float64, error) {
	run, err := measure.Run(ctx, command, environment...)
	if err != nil {
		return 0, err
	}
	return p.Format.Rate(run)
}

func (b bench) tuned(ctx context.Context, p catalogue.Program, r *result) error {
	attune := b.attune
	attune.Flags = slices.Concat(attune.Flags, p.Flags)
	run, err := attune.Run(ctx, p.Default(b.seconds))
	if err != nil {
		return err
	}
	if err := b.keep(p, len(r.Tuned)+1); err != nil {
		return err
	}
	rate, err := p.Format.Rate(run.Result)
	if err != nil {
		return fmt.Errorf("under attune: %w", err)
	}
	r.Tuned = append(r.Tuned, rate)
	r.note(p, run)
	return nil
}

// keep copies the report of a run to where the user wants it.
func (b bench) keep(p catalogue.Program, turn int) error {
	if b.reports == "" {
		return nil
	}
	data, err := os.ReadFile(b.attune.ReportFile())
	if err != nil {
		return err
	}
	file := fmt.Sprintf("%s-%d.json", strings.NewReplacer("/", "-", " ", "-").Replace(p.Name), turn)
	return os.WriteFile(filepath.Join(b.reports, file), data, 0o644)
}

// note takes from a run's report what was changed.
func (r *result) note(p catalogue.Program, run tuned.Run) {
	r.NotLoaded = union(r.NotLoaded, notLoaded(run.Report))
	changes := tuned.Changes(run.Report)
	own := tuned.Of(p.Tunlet, changes)
	r.Others += tuned.Proposals(changes) - tuned.Proposals(own)
	for _, c := range changes {
		switch what := fmt.Sprintf("%s: %s %s: %s", c.Tunlet, c.Knob, c.Verdict, c.Reason); {
		case c.Tunlet != p.Tunlet:
			r.OtherChanges = union(r.OtherChanges, []string{what})
		case c.Verdict != report.VerdictKept:
			r.NotKept = union(r.NotKept, []string{what})
		}
	}
	at, ok := tuned.FirstKept(own)
	if !ok {
		return
	}
	r.Reaction = append(r.Reaction, at.Sub(p.Format.Beginning(run.Result)).Seconds())
	first := own[slices.IndexFunc(own, func(c tuned.Change) bool { return c.Verdict == report.VerdictKept })]
	if first.Predicted > 0 && first.Measured > 0 {
		r.Predicted = append(r.Predicted, first.Predicted)
		r.Measured = append(r.Measured, first.Measured)
	}
}

// notLoaded names the tunlets of the catalogue that a run was without.
func notLoaded(r report.Report) (names []string) {
	for _, name := range tunlets.Names() {
		i := slices.IndexFunc(r.Tunlets, func(t report.Tunlet) bool { return t.Name == name })
		if i < 0 || r.Tunlets[i].Restarts > 0 || !slices.Contains([]string{"asleep", "running", "stopped"}, r.Tunlets[i].State) {
			names = append(names, name)
		}
	}
	return names
}

// union appends what is not there yet.
func union(to, more []string) []string {
	for _, text := range more {
		if !slices.Contains(to, text) {
			to = append(to, text)
		}
	}
	return to
}
