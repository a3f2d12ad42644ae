// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/actuate/system"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procmem"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Overridden looks for changes in force whose value somebody else has changed
// since: the owner of the process by other means, an administrator, or the
// program itself. Their value stays: the change is not in force any more, and
// nothing will put the original value back. It reads only, without stopping
// anything. What is done to functions, and settings that cannot be read back,
// are not looked at.
func (a *Actuator) Overridden() []*attunev1.ActionResult {
	var results []*attunev1.ActionResult
	for _, id := range a.Applied() {
		if result := a.overridden(id); result != nil {
			results = append(results, result)
		}
	}
	return results
}

// overridden drops one change that is not what it was made; nil: it is.
func (a *Actuator) overridden(id string) *attunev1.ActionResult {
	change := a.find(id)
	if change == nil || !change.plan.readable() {
		return nil
	}
	change.process.Lock()
	defer change.process.Unlock()
	if a.find(id) != change || !change.process.Alive() {
		return nil
	}
	reason, err := a.otherValue(id, change)
	if err != nil {
		a.log.Debug("read a change back", "change", id, "error", err) // it may be ending
	}
	if err != nil || reason == "" {
		return nil
	}
	change.tending.end()
	if err := a.options.Journal.end(id, "overridden"); err != nil {
		a.log.Warn("change that somebody else changed", "change", id, "error", err)
	}
	a.mu.Lock()
	delete(a.applied, id)
	a.mu.Unlock()
	a.log.Info("changed by hand", "change", id, "knob", change.knob, "pid", change.process.PID(), "reason", reason)
	return &attunev1.ActionResult{ChangeId: id, Outcome: attunev1.Outcome_OUTCOME_OVERRIDDEN, Reason: reason}
}

// readable reports whether the plan set values that stay as they are unless
// somebody sets others: variables, and what the operating system keeps.
func (p *plan) readable() bool {
	variables := len(p.words) > 0 && p.stream == nil && p.named == nil && p.patched == nil && p.library == nil
	return variables || len(p.settings) > 0
}

// otherValue says what has another value than the change gave it; empty:
// nothing. The caller holds the process' lock.
func (a *Actuator) otherValue(id string, change *appliedChange) (string, error) {
	for _, w := range change.plan.words {
		if _, later := a.next(id, change.process, w.Address); later != nil || w.Slot || w.Thread != nil {
			continue
		}
		now := make([]byte, len(w.New))
		if err := procmem.Read(change.process.PID(), w.Address, now); err != nil {
			return "", err
		}
		if !bytes.Equal(now, w.New) && stillMapped(change.process, w) {
			return fmt.Sprintf("%s is %s, not %s", w.What, number(now), number(w.New)), nil
		}
	}
	return system.Overridden(change.process.Identity(), a.last(change))
}

// last lists the settings of a change that no later change in force has as well.
func (a *Actuator) last(change *appliedChange) []system.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(change.plan.settings), func(s system.State) bool {
		for _, later := range a.applied {
			if later.number > change.number && slices.ContainsFunc(later.plan.settings, func(o system.State) bool {
				return o.Knob == s.Knob && (o.Place == s.Place && later.process == change.process || sameFile(o.Place, s.Place))
			}) {
				return true
			}
		}
		return false
	})
}

// sameFile reports whether two places are one pipe, socket or cgroup, which
// several processes may have.
func sameFile(a, b system.Place) bool {
	return a.Inode != 0 && a.Inode == b.Inode && a.Device == b.Device
}

// stillMapped reports whether the object of a word is still where it was: its memory
// may be something else's.
func stillMapped(process Process, w Word) bool {
	images, err := process.Images()
	if err != nil || w.ImagePath == "" {
		return false
	}
	return slices.ContainsFunc(images, func(image objfile.Image) bool {
		return image.Path == w.ImagePath && image.Bias == w.ImageBias
	})
}
