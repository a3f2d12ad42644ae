// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/system"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/rundir"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// journalPatience is how long a command waits for another one to finish.
const journalPatience = 10 * time.Second

// tunee is a process that is changed by hand. It has no DMLib as far as this
// command knows.
type tunee struct {
	sync.Mutex
	held *procid.Process
}

var _ actuate.Process = (*tunee)(nil)

func (t *tunee) PID() int                         { return t.held.PID() }
func (t *tunee) Identity() procid.Identity        { return t.held.Identity() }
func (t *tunee) Alive() bool                      { return t.held.Alive() }
func (t *tunee) Images() ([]objfile.Image, error) { return objfile.Images(t.held.PID()) }
func (t *tunee) Mailbox() actuate.Mailbox         { return nil }

// tuned is one line of the answer, and the JSON document's element.
type tuned struct {
	// ID to undo it by; empty where there is nothing to undo.
	ID      string `json:"id,omitempty"`
	PID     int    `json:"pid"`
	Program string `json:"program"`
	Knob    string `json:"knob"`
	On      *int32 `json:"on,omitempty"`
	Old     string `json:"old"`
	New     string `json:"new"`
	// State: changed, unchanged or, in a dry run, would-change.
	State string `json:"state"`
	// Undo says why it cannot be taken back; empty: it can.
	Undo string `json:"cannot_undo,omitempty"`
}

// States of a tuned line.
const (
	stateChanged   = "changed"
	stateUnchanged = "unchanged"
	stateWould     = "would-change"
)

// tuning is one `attune tune` at work.
type tuning struct {
	actuator *actuate.Actuator
	kept     *actuate.Kept // nil in a dry run
	applied  []string
	lines    []tuned
}

func tune(ctx context.Context, p *process, flags tuneFlags, pids []int, settings []setting) (err error) {
	processes, err := openProcesses(pids)
	defer closeProcesses(processes)
	if err != nil {
		return err
	}
	t := &tuning{}
	options := actuate.Options{WithoutUndo: flags.noUndo, InJob: descendsFrom(pids, flags.shared)}
	if !flags.dryRun {
		if t.kept, err = openKept(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.kept.Close()) }()
		options.Journal = t.kept.Journal
	}
	t.actuator = actuate.New(options)
	for _, process := range processes {
		for _, s := range settings {
			if err := t.one(ctx, process, s); err != nil {
				return t.giveUp(ctx, fmt.Errorf("process %d: %w", process.PID(), err))
			}
		}
	}
	return t.write(p, flags.json)
}

func openKept(ctx context.Context) (*actuate.Kept, error) {
	dir, err := rundir.Current().LastingStateDir()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, journalPatience)
	defer cancel()
	return actuate.OpenKept(ctx, dir, host)
}

// one makes one change, or says what it would do.
func (t *tuning) one(ctx context.Context, process *tunee, s setting) error {
	set := &attunev1.SystemSetting{
		Name: s.name, Value: &attunev1.Value{Kind: &attunev1.Value_Text{Text: s.value}},
	}
	if s.on != system.Everywhere {
		on := int32(s.on)
		set.On = &on
	}
	preview, err := t.actuator.PreviewSystem(process.Identity(), set)
	if err != nil {
		return err
	}
	line := tuned{
		PID: process.PID(), Program: programName(process.PID()), Knob: s.name, On: set.On,
		Old: preview.Old, New: preview.New, State: stateWould,
	}
	if preview.Undo != nil {
		line.Undo = preview.Undo.Error()
	}
	switch {
	case preview.Unchanged:
		line.State = stateUnchanged
	case t.kept != nil:
		if err := t.apply(ctx, process, set, &line); err != nil {
			return err
		}
	}
	t.lines = append(t.lines, line)
	return nil
}

func (t *tuning) apply(ctx context.Context, process *tunee, set *attunev1.SystemSetting, line *tuned) error {
	id := t.kept.NextID()
	result := t.actuator.Apply(ctx, process, &attunev1.Change{
		Id: id, Knob: set.GetName(), Action: &attunev1.Action{Kind: &attunev1.Action_System{System: set}},
	})
	if result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		return errors.New(result.GetReason())
	}
	t.applied = append(t.applied, id)
	line.ID, line.State = id, stateChanged
	line.Old, line.New = result.GetOldValue().GetText(), result.GetNewValue().GetText()
	return nil
}

// giveUp takes back what this command has changed, the latest first, and says
// why in one line.
func (t *tuning) giveUp(ctx context.Context, because error) error {
	if errors.Is(because, system.ErrNoUndo) {
		because = fmt.Errorf("%w; with --no-undo it is changed all the same", because)
	}
	for _, id := range slices.Backward(t.applied) {
		result := t.actuator.Undo(ctx, id)
		if result.GetOutcome() == attunev1.Outcome_OUTCOME_FAILED {
			because = fmt.Errorf("%w; change %s stays: %s", because, id, result.GetReason())
			continue
		}
		because = fmt.Errorf("%w; change %s was taken back", because, id)
	}
	return because
}

func (t *tuning) write(p *process, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(p.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(t.lines)
	}
	for _, line := range t.lines {
		if _, err := fmt.Fprintln(p.stdout, line.text()); err != nil {
			return err
		}
	}
	return nil
}

// text is the line for people.
func (l tuned) text() string {
	name := l.Knob
	if l.On != nil {
		name += fmt.Sprintf("@%d", *l.On)
	}
	what := fmt.Sprintf("%s of process %d (%s): %s → %s", name, l.PID, l.Program, l.Old, l.New)
	undo := "; attune undo " + l.ID
	if l.State == stateWould {
		undo = "; it can be undone"
	}
	if l.Undo != "" {
		undo = "; no way back: " + l.Undo
	}
	switch l.State {
	case stateUnchanged:
		return fmt.Sprintf("unchanged: %s of process %d (%s) is %s already", name, l.PID, l.Program, l.Old)
	case stateWould:
		return "would change: " + what + undo
	}
	return "change " + l.ID + ": " + what + undo
}
