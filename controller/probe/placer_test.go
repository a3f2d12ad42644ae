// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A point that was removed before the goroutine that places it came to the
// process stays out of it.
func TestRemovedPointIsNotPlacedLate(t *testing.T) {
	placer, heard := start(t)
	p := mustProcess(t, 10)
	placer.Admit(context.Background(), p, true)
	tenant, late, next := placer.tenants.at(10), hook("malloc"), hook("read")
	place := func(spec *attunev1.MeasurePoint) {
		tenant.mu.Lock()
		defer tenant.mu.Unlock()
		tenant.place(t.Context(), 1, spec, false)
	}

	placer.points.add(1, late) // as Add does, before it starts the goroutine
	placer.Remove(1)
	place(late)
	if got := enabled(p); len(got) != 0 || heard.of(1) != nil {
		t.Errorf("enabled after removal: %v, %v", got, heard.of(1))
	}
	placer.points.add(1, next) // the index is given anew
	place(late)
	place(next)
	placer.Close()
	if symbols := heard.of(1).GetSymbols(); len(symbols) != 1 || symbols[0] != "read" {
		t.Errorf("placed %v, want read", symbols)
	}
}

// Why a point is refused stays what it was when the process ends during another
// attempt; of one that was never tried before, that is the reason.
func TestReasonOutlivesTheProcess(t *testing.T) {
	why := errors.New("not permitted")
	heard := &listener{status: make(map[uint32]*attunev1.PointStatus)}
	placer := New(Options{Status: heard.hear, Uprobes: func() (*uprobe.Uprobes, error) { return nil, why }})
	t.Cleanup(placer.Close)
	function := func(id string) *attunev1.MeasurePoint {
		return &attunev1.MeasurePoint{Id: id, Target: &attunev1.MeasurePoint_Function{Function: &attunev1.FunctionTarget{Symbols: []string{id}}}}
	}
	early, late := function("early"), function("late")
	placer.Admit(t.Context(), mustProcess(t, 10), true)
	placer.points.add(1, early) // as Add does, before it starts a goroutine
	placer.points.add(2, late)
	tenant := placer.tenants.at(10)
	tenant.mu.Lock()
	defer tenant.mu.Unlock()

	tenant.place(t.Context(), 1, early, false)
	for _, why = range []error{unix.ESRCH, procid.ErrGone} { // as the memory of the dead is read, and their files
		tenant.place(t.Context(), 1, early, false)
	}
	tenant.place(t.Context(), 2, late, false)
	heard.expect(t, 1, attunev1.PointState_POINT_STATE_REFUSED, "not permitted")
	heard.expect(t, 2, attunev1.PointState_POINT_STATE_REFUSED, procid.ErrGone.Error())
}

// So it does where another way to serve the point has a reason of its own.
func TestReasonOutlivesTheProcessThatWasPatched(t *testing.T) {
	heard := &listener{status: make(map[uint32]*attunev1.PointStatus)}
	placer := New(Options{Status: heard.hear, Uprobes: func() (*uprobe.Uprobes, error) { return nil, errors.New("not permitted") }})
	t.Cleanup(placer.Close)
	process := mustProcess(t, 10)
	placer.Admit(t.Context(), process, true)
	spec := &attunev1.MeasurePoint{Id: "f", Target: &attunev1.MeasurePoint_Function{Function: &attunev1.FunctionTarget{Symbols: []string{"f"}}}}
	placer.points.add(1, spec) // as Add does, before it starts a goroutine
	tenant := placer.tenants.at(10)
	tenant.mu.Lock()
	defer tenant.mu.Unlock()

	for _, process.unmapped = range []error{errors.New("no access"), procid.ErrGone} {
		tenant.place(t.Context(), 1, spec, false)
	}
	heard.expect(t, 1, attunev1.PointState_POINT_STATE_REFUSED, "no access")
}
