// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/dwarfinfo"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// replaceKind has another function run instead of one.
func replaceKind() actuate.Kind {
	return actuate.Kind{
		Route: actuate.Route{
			Action:  "replace",
			What:    "replace function",
			Command: "attune tune replace",
			Ways:    []access.Way{access.WayEntry, access.WayGOT},
			Remark:  "The second where the entry cannot be patched, or an indirect function (IFUNC) has chosen code outside of its object, or that another one may have chosen as well (memcpy and memmove): then calls inside its object, through pointers taken before, and of objects that are loaded later are not changed, and the answer says so. Where debug information has both signatures they must agree, unless forced.",
			Undo:    "the function's first byte (or bytes), or the slots; refused if somebody else has changed them since",
		},
		Plan: planReplace,
	}
}

// planReplace prepares that calls of one function go to another: by its entry,
// or else by the GOT slots of all objects.
func planReplace(_ context.Context, r *actuate.Request) (*actuate.Plan, error) {
	replace := r.Change.GetAction().GetReplace()
	process := r.Process
	old, unchanged := access.LookupChanged(process, replace.GetOld())
	indirect := errors.Is(unchanged, objfile.ErrIndirect)
	if unchanged != nil && !indirect {
		return nil, unchanged
	}
	other, err := access.LookupCalled(process, replace.GetNew())
	if err != nil {
		return nil, err
	}
	names := append(namesOf(old, replace.GetOld().GetObject(), replace.GetOld().GetSymbol()), namesOf(other, replace.GetNew().GetObject(), replace.GetNew().GetSymbol())...)
	if err := r.Allowed("replace", nil, names...); err != nil {
		return nil, err
	}
	if old.Address == other.Address {
		return nil, fmt.Errorf("%w: %s is that function", access.ErrRefused, replace.GetNew().GetSymbol())
	}
	if !replace.GetForce() {
		if err := sameSignature(old, other); err != nil {
			return nil, fmt.Errorf("%w: %w; use --force to replace it anyway", access.ErrRefused, err)
		}
	}
	slots := gotChange{process: process, old: old, target: other.Address}
	say := actuate.Told{Where: functionPlace(old), Old: functionPlace(old), New: functionPlace(other)}
	if indirect {
		p := &actuate.Plan{Told: say, Read: noValue}
		return p, slots.serve(p, unchanged)
	}
	return planEntryOrSlots(r, slots, say)
}

// planEntryOrSlots has a function lead to another one at its entry, and where that
// cannot be patched in the slots of its callers.
func planEntryOrSlots(r *actuate.Request, slots gotChange, say actuate.Told) (*actuate.Plan, error) {
	p, err := planEntry(r, slots.old, patch.Step{Replace: &patch.Replace{Target: slots.target}}, say)
	if err != nil {
		return nil, err
	}
	byEntry := p.Prepare
	p.Prepare = func(ctx context.Context) error {
		err := byEntry(ctx)
		if err == nil || !unpatchable(err) {
			return err
		}
		if slotsErr := slots.serve(p, err); slotsErr != nil {
			return fmt.Errorf("%w; and %w", err, slotsErr)
		}
		return nil
	}
	return p, nil
}

// unpatchable says whether the entry of a function is what stands against a
// change, so that its callers may be changed instead.
func unpatchable(err error) bool {
	reasons := []error{patch.ErrUnpatchable, sites.ErrNoDMLib, inject.ErrUnsuited, inject.ErrNoSafePoint}
	return slices.ContainsFunc(reasons, func(reason error) bool { return errors.Is(err, reason) })
}

// functionPlace is OBJECT:FUNCTION.
func functionPlace(found objfile.Resolved) string {
	return found.Image.Name() + ":" + found.Symbol.Name
}

func noValue() (*attunev1.Value, error) { return nil, nil } //nolint:nilnil // no value is an answer

// sameSignature compares two functions as far as debug information tells.
func sameSignature(old, other objfile.Resolved) error {
	a, known := signature(old)
	b, alsoKnown := signature(other)
	if !known || !alsoKnown {
		return nil
	}
	if len(a.Parameters) != len(b.Parameters) {
		return fmt.Errorf("%s takes %d parameters, %s takes %d", old.Symbol.Name, len(a.Parameters), other.Symbol.Name, len(b.Parameters))
	}
	for i := range a.Parameters {
		p, q := a.Parameters[i], b.Parameters[i]
		if p.Class != q.Class || p.Type.Size != q.Type.Size {
			return fmt.Errorf("parameter %d of %s is a %s, that of %s a %s", i, old.Symbol.Name, p.Type.Name, other.Symbol.Name, q.Type.Name)
		}
	}
	if a.Result.Kind != b.Result.Kind || a.Result.Size != b.Result.Size {
		return fmt.Errorf("%s returns %s, %s returns %s", old.Symbol.Name, a.Result.Name, other.Symbol.Name, b.Result.Name)
	}
	return nil
}

// signature is what debug information tells of a function; false where there is
// none, or it tells of the resolver that chooses the function (IFUNC).
func signature(found objfile.Resolved) (dwarfinfo.Function, bool) {
	if found.Symbol.IFunc() {
		return dwarfinfo.Function{}, false
	}
	file, err := found.Image.Open()
	if err != nil {
		return dwarfinfo.Function{}, false
	}
	defer file.Close()
	info, err := dwarfinfo.Open(file)
	if err != nil {
		return dwarfinfo.Function{}, false
	}
	f, err := info.Function(found.Symbol)
	return f, err == nil
}

// namesOf are the names of a symbol for the policy: as the object has it, and
// as it was asked for.
func namesOf(found objfile.Resolved, object, symbol string) []string {
	return []string{found.Image.Name() + ":" + found.Symbol.Name, object + ":" + symbol}
}

// gotChange leads the calls of a function that go through dynamic linking to
// another one.
type gotChange struct {
	process access.Process
	old     objfile.Resolved
	target  uint64
}

// serve makes a plan one of GOT slots; because says why nothing better serves.
func (g gotChange) serve(p *actuate.Plan, because error) error {
	words, err := g.words()
	if err != nil {
		return err
	}
	p.Way, p.Undo, p.Prepare = access.WayGOT, actuate.UndoWords(words), nil
	p.Partial = fmt.Sprintf("calls inside %s, through pointers taken before, and of objects that are loaded later are not changed (%v)",
		g.old.Image.Name(), because)
	p.Read = noValue
	p.Run = func(ctx context.Context) (access.Done, error) {
		for _, w := range words {
			if err := access.ExchangeSlot(ctx, g.process, w, w.Old, w.New); err != nil {
				return access.Done{}, err
			}
		}
		return access.DoneNow(nil)
	}
	return nil
}

// words are the slots of all objects that the loader fills with the function.
func (g gotChange) words() (words []access.Word, err error) {
	if !g.old.Symbol.Dynamic {
		return nil, fmt.Errorf("%w: %s is not exported: nobody calls it through a GOT", access.ErrRefused, g.old.Symbol.Name)
	}
	images, err := g.process.Images()
	if err != nil {
		return nil, err
	}
	images = slices.DeleteFunc(slices.Clone(images), func(i objfile.Image) bool { return i.Matches("libattune-dm*") })
	_, ambiguous := objfile.Namesake(images, g.old.Symbol.Name, g.old.Address, objfile.Image.Exports)
	for _, image := range images {
		of, err := g.slotsOf(images, image, ambiguous)
		if err != nil {
			return nil, err
		}
		words = append(words, of...)
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("%w: no object of the process calls %s through its GOT", access.ErrRefused, g.old.Symbol.Name)
	}
	return words, nil
}

// slotsOf lists those of one object. One that the loader has not come to is as those
// of objects that are loaded later, and one that leads to another object's function
// of that name, or may where the name is ambiguous, is none of this function's, nor is
// one of another version.
func (g gotChange) slotsOf(images []objfile.Image, image objfile.Image, ambiguous bool) (words []access.Word, err error) {
	slots, err := image.GOTSlots(g.old.Symbol.Name)
	if err != nil {
		return nil, nil //nolint:nilerr // its calls stay as they are
	}
	for _, slot := range slots {
		if g.old.OtherVersion(slot) {
			continue
		}
		w, err := access.WordAt(g.process, image, image.Address(slot.VirtualAddress), "GOT slot of "+slot.Symbol, 8, access.Unsigned(g.target))
		if err != nil {
			return nil, err
		}
		w.ReadOnly, w.Slot, w.Origin = slot.RELRO, true, slot.Origin
		now := binary.LittleEndian.Uint64(w.Old)
		callee, told := objfile.Callee(images, slot.Symbol, g.old.Address, now)
		another := told && !callee.Has(g.old.Address) || !told && ambiguous
		if another || !slot.Origin.Relocated(now, image.Bias) {
			continue
		}
		words = append(words, w)
	}
	return words, nil
}
