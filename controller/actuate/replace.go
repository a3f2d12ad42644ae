// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/entry"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/dwarfinfo"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// replaceKind has another function run instead of one.
func replaceKind() actionKind {
	return actionKind{
		Route{
			"replace", "replace function", "attune tune replace", []Way{WayEntry, WayGOT},
			"The second where the entry cannot be patched, or an indirect function (IFUNC) has chosen code outside of its object, or that another one may have chosen as well (memcpy and memmove): then calls inside its object, through pointers taken before, and of objects that are loaded later are not changed, and the answer says so. Where debug information has both signatures they must agree, unless forced.",
			"the function's first byte (or bytes), or the slots; refused if somebody else has changed them since",
		},
		func(_ context.Context, a *Actuator, process Process, change *attunev1.Change) (*plan, error) {
			return a.planReplace(process, change, change.GetAction().GetReplace())
		},
	}
}

// planReplace prepares that calls of one function go to another: by its entry,
// or else by the GOT slots of all objects.
func (a *Actuator) planReplace(process Process, change *attunev1.Change, r *attunev1.ReplaceFunction) (*plan, error) {
	old, unchanged := lookupChanged(process, r.GetOld())
	indirect := errors.Is(unchanged, objfile.ErrIndirect)
	if unchanged != nil && !indirect {
		return nil, unchanged
	}
	other, err := lookupCalled(process, r.GetNew())
	if err != nil {
		return nil, err
	}
	names := append(namesOf(old, r.GetOld().GetObject(), r.GetOld().GetSymbol()), namesOf(other, r.GetNew().GetObject(), r.GetNew().GetSymbol())...)
	if err := a.allowed(process, "replace", nil, names...); err != nil {
		return nil, err
	}
	if old.Address == other.Address {
		return nil, fmt.Errorf("%w: %s is that function", ErrRefused, r.GetNew().GetSymbol())
	}
	if !r.GetForce() {
		if err := sameSignature(old, other); err != nil {
			return nil, fmt.Errorf("%w: %w; force replaces it all the same", ErrRefused, err)
		}
	}
	say := told{Where: functionPlace(old), Old: functionPlace(old), New: functionPlace(other)}
	slots := gotChange{process: process, old: old, target: other.Address}
	if indirect {
		p := &plan{told: say, read: noValue}
		return p, slots.serve(p, unchanged)
	}
	p, err := a.planEntry(process, change, old, patch.Replace{Target: other.Address}, say)
	if err != nil {
		return nil, err
	}
	byEntry := p.prepare
	p.prepare = func(ctx context.Context) error {
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
	for _, reason := range []error{patch.ErrUnpatchable, entry.ErrNoDMLib, inject.ErrUnsuited, inject.ErrNoSafePoint} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
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
	info, err := dwarfinfo.Open(file, file.DebugDirs())
	if err != nil {
		return dwarfinfo.Function{}, false
	}
	f, err := info.Function(found.Symbol)
	return f, err == nil
}
