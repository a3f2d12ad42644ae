// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/attune-hpc/attune/cmd/attune/internal/byhand"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/permission"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/controller/actuate/kinds"
	"github.com/attune-hpc/attune/controller/actuate/system"
	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/rundir"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// tuning is one `attune tune` at work.
type tuning struct {
	actuator *actuate.Actuator
	kept     *actuate.Kept // nil in a dry run
	lines    []Answer
	items    []actuate.Item
	lineOf   []int // of each item
}

func tune(ctx context.Context, p *cli.Env, flags Flags, pids []int, requests []Request) error {
	return Noting(ctx, p, flags, pids, requests, func([]string) error { return nil })
}

// Noting is tune, and hands the ids of the changes that were made to note.
func Noting(ctx context.Context, p *cli.Env, flags Flags, pids []int, requests []Request, note func(ids []string) error) error {
	rules, err := permission.Policy()
	if err != nil {
		return err
	}
	held, err := procs.Hold(pids)
	defer procs.LetGo(held)
	if err != nil {
		return err
	}
	processes := make([]*access.Journaled, len(held))
	for i, process := range held {
		processes[i] = access.ProcessOf(process.Identity())
	}
	defer func() {
		for _, process := range processes {
			process.Close()
		}
	}()
	probe, err := dmlib.LoadProbe()
	if err != nil && !errors.Is(err, dmlib.ErrNotBuilt) {
		return err
	}
	finder := &hidden.Prober{Helper: probe, Dir: rundir.Current().VariablesDir()}
	t := &tuning{}
	known := kinds.All(kinds.Options{
		Hidden: finder, System: system.Options{WithoutUndo: flags.NoUndo, InJob: procs.Descends(pids, flags.shared)},
	})
	options := actuate.Options{Kinds: known, Policy: rules.Always, Origin: "hand"}
	if !flags.DryRun {
		if t.kept, err = byhand.Open(ctx); err != nil {
			return err
		}
		options.Journal = t.kept.Journal
	}
	t.actuator = actuate.New(options)
	cli.OutlivePipes()
	if err = t.lookAll(ctx, processes, requests); err == nil {
		err = t.change(ctx, p, flags.JSON, note)
	}
	if t.kept != nil {
		err = errors.Join(err, t.kept.Close())
	}
	return errors.Join(err, t.attend(ctx, p))
}

// made returns the ids of the changes that can be undone.
func (t *tuning) made() (ids []string) {
	for _, line := range t.lines {
		if line.ID != "" && line.State == StateChanged {
			ids = append(ids, line.ID)
		}
	}
	return ids
}

// lookAll looks at all changes before any is made.
func (t *tuning) lookAll(ctx context.Context, processes []*access.Journaled, requests []Request) error {
	for _, process := range processes {
		for _, r := range requests {
			if r.OfMPI {
				continue
			}
			if err := t.look(ctx, process, r); err != nil {
				return advise(fmt.Errorf("process %d: %w; nothing was changed", process.PID(), err))
			}
		}
	}
	for _, r := range requests {
		if r.OfMPI {
			if err := t.lookTogether(ctx, processes, r); err != nil {
				return fmt.Errorf("%s: %w; nothing was changed", r.Name, err)
			}
		}
	}
	return nil
}

// change makes the changes, has them noted and says so, in that order: they stay where it cannot
// be said.
func (t *tuning) change(ctx context.Context, p *cli.Env, asJSON bool, note func(ids []string) error) error {
	err := t.apply(ctx)
	say := t.write
	if err != nil {
		say = t.writeFailure
	}
	return errors.Join(err, t.staying(errors.Join(note(t.made()), say(p, asJSON))))
}

// attend stays for as long as changes need it, and takes them back when it is
// told to end.
func (t *tuning) attend(ctx context.Context, p *cli.Env) error {
	ids := t.actuator.Tended()
	if len(ids) == 0 {
		return nil
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, func() { cli.EndAtNext(stop) }) // a frozen program is waited for without end
	fmt.Fprintln(p.Stderr, "what is held back is written every 0.1 s while this command runs; Ctrl-C takes the change back and ends it")
	t.actuator.Attend(ctx)
	_, err := byhand.UndoLeft(context.WithoutCancel(ctx), p, ids)
	return err
}

// advise adds what a person can do about a refusal.
func advise(because error) error {
	if errors.Is(because, system.ErrNoUndo) {
		return fmt.Errorf("%w; use --no-undo to change it anyway", because)
	}
	return because
}

// look says what one change would do, and remembers it if it is to be made.
func (t *tuning) look(ctx context.Context, process *access.Journaled, r Request) error {
	change := &attunev1.Change{Knob: r.Name, Action: r.Action, SafePoint: r.At}
	preview, err := t.actuator.Preview(ctx, process, change)
	if err != nil {
		return err
	}
	t.add(process, r, change, preview)
	return nil
}

// lookTogether is look for a change that is made in all processes together.
func (t *tuning) lookTogether(ctx context.Context, processes []*access.Journaled, r Request) error {
	items := make([]actuate.Item, len(processes))
	for i, process := range processes {
		items[i] = actuate.Item{Process: process, Change: &attunev1.Change{Knob: r.Name, Action: r.Action, SafePoint: r.At}}
	}
	previews, err := t.actuator.PreviewJoint(ctx, items)
	for i, preview := range previews {
		t.add(processes[i], r, items[i].Change, preview)
	}
	return err
}

// add remembers a change, if it is to be made.
func (t *tuning) add(process *access.Journaled, r Request, change *attunev1.Change, preview actuate.Preview) {
	line := newTuned(process, r, preview)
	if !preview.Unchanged && t.kept != nil {
		change.Id = t.kept.NextID()
		line.ID = change.Id
		t.items = append(t.items, actuate.Item{Process: process, Change: change})
		t.lineOf = append(t.lineOf, len(t.lines))
	}
	t.lines = append(t.lines, line)
}

// apply makes the changes, all or none.
func (t *tuning) apply(ctx context.Context) (because error) {
	if len(t.items) == 0 {
		return nil
	}
	for i, result := range t.actuator.ApplySet(ctx, t.items, actuate.SetHooks{}) {
		line := &t.lines[t.lineOf[i]]
		line.take(result)
		if line.State != StateChanged && line.State != stateUntried && line.State != stateBack && because == nil {
			because = fmt.Errorf("process %d: %s: %s", line.PID, line.Knob, line.Reason)
		}
		if line.leaves && line.State == StateChanged {
			line.ID = ""
			because = errors.Join(because, t.kept.Settle(result.GetChangeId()))
		}
	}
	return because
}
