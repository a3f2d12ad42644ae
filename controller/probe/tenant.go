// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/budget"
	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// tenant is one process with what is placed in it.
type tenant struct {
	placer  *Placer
	process Process

	mu       sync.Mutex // guards what follows; held while something is placed, one at a time but for lockAll
	gone     bool
	placed   map[uint16]*placement
	owner    [shm.PointCount]uint16   // local index -> point, 0: nobody's
	stubs    map[uint64]int           // function address -> stub, for good; nil: not read yet
	nextStub int                      // no stub from this one on is bound
	redirect []redirection            // GOT slots that lead to stubs
	measured map[int][]sites.Function // what is patched for a local index
	degraded map[uint16]degradation   // what the overhead budget has touched
	// whyKernel says why a point is to be the kernel's whose turn comes when
	// patches have given way.
	whyKernel map[uint16]string
	// recalled are points that are about to be served by patches again.
	recalled map[uint16]recalled
	// refused has the points of which it was told why they are not here.
	refused map[uint16]*attunev1.MeasurePoint

	batch *batch // under way; nil: none

	wishes wishes               // that wait for mu
	view   atomic.Pointer[view] // for readers that must not wait for mu
}

// view is what is placed, as of the last change. It is never modified.
type view struct {
	costs   map[uint16]float64
	uprobed []uint16 // those whose hits a uprobe sums up
	loads   []budget.Load
}

// show publishes the view. The caller holds t.mu.
func (t *tenant) show() {
	v := &view{costs: make(map[uint16]float64, len(t.placed))}
	for index, p := range t.placed {
		v.costs[index] = p.cost
		if len(p.attachments) > 0 && control(index, p.spec).Aggregate {
			v.uprobed = append(v.uprobed, index)
		}
		v.loads = append(v.loads, p.load)
	}
	for index, d := range t.degraded {
		if d.before != nil && t.placed[index] == nil {
			v.loads = append(v.loads, t.load(index, d.spec, d.before))
		}
	}
	t.view.Store(v)
}

// placement is one point in one process.
type placement struct {
	spec        *attunev1.MeasurePoint // tells it from an earlier point of the same index
	mechanism   string
	reason      string
	symbols     []string
	cost        float64
	measured    bool // the cost, on this machine
	expected    bool // from the first hit on, though placed later
	late        time.Duration
	extra       float64 // of cost, what the mechanism adds to a hook's
	captured    captures
	preferred   bool // the kernel serves it for less, as it was asked for
	load        budget.Load
	locals      []int // hooks and stubs that serve it
	attachments []heldAttachment
	atReturn    bool // some of them are return probes
	yielding    bool // patches would serve, were it not for another point's uprobe
}

// redirection is one GOT slot that leads to a stub.
type redirection struct {
	address uint64
	old     uint64
	relro   bool
	stub    int
	origin  objfile.Origin // in an object that is loaded at bias
	bias    uint64
}

// place puts a point into the process, or more of it if it is there already,
// and tells the outcome where something changed. False if that failed because
// ctx ended while the process was held: nothing is told, it is to be tried
// again. The caller holds t.mu.
func (t *tenant) place(ctx context.Context, index uint16, spec *attunev1.MeasurePoint, held bool) bool {
	if t.gone || !t.placer.has(index, spec) {
		return true // ended, or removed while this goroutine was on its way
	}
	if earlier := t.placed[index]; earlier != nil && earlier.spec != spec {
		t.takeOut(ctx, index) // its removal is on its way as well, and finds it gone
	}
	if d := t.degraded[index]; d.spec == spec && d.level == budget.Off {
		return true
	}
	if t.endangers(index) != nil {
		t.takeOut(ctx, index)
	}
	before, again := t.placed[index]
	now, err := t.named(t.effective(index, spec))
	p := before
	switch {
	case err != nil:
	case !again:
		p, err = t.serve(ctx, index, now, held)
	case before.mechanism == MechanismGOT:
		p, err = t.placeGOT(ctx, index, now, held)
	case before.mechanism == MechanismPatch:
		p, err = t.placePatch(ctx, index, now, before.reason, true)
	}
	switch {
	case err != nil && held && ctx.Err() != nil:
		return false
	case errors.Is(err, errExpected):
	case again && (err != nil || slices.Equal(p.symbols, before.symbols)):
	case t.refused[index] == spec && t.ended(err): // the reason told is the better one
	case err != nil:
		t.refuse(index, spec, err)
	default:
		if !again && !t.settleRecalled(index, p) {
			p.late = t.late(index, p, held)
		}
		t.tell(index, spec, p, nil)
	}
	return true
}

// ended says whether what could not be done failed because the process, or its
// image, is no more.
func (t *tenant) ended(err error) bool {
	return errors.Is(err, procid.ErrGone) || errors.Is(err, unix.ESRCH) || err != nil && !t.process.Alive()
}

// late is for how long the process has run while the point was wanted and not
// there. The caller holds t.mu.
func (t *tenant) late(index uint16, p *placement, held bool) time.Duration {
	if held || p.expected {
		return 0
	}
	from := t.process.Started()
	t.placer.mu.Lock()
	defer t.placer.mu.Unlock()
	if asked := t.placer.asked[index]; asked.After(from) {
		from = asked
	}
	return max(0, time.Since(from))
}

// tell notes and tells what became of a point. The caller holds t.mu.
func (t *tenant) tell(index uint16, spec *attunev1.MeasurePoint, p *placement, err error) {
	status := &attunev1.PointStatus{Point: uint32(index), Process: t.process.Handle()}
	if err != nil {
		delete(t.recalled, index)
		t.refused[index] = spec
		status.State = attunev1.PointState_POINT_STATE_REFUSED
		status.Reason = err.Error()
		t.placer.log.Info("measure point refused", "point", spec.GetId(), "pid", t.process.PID(), "reason", err)
	} else {
		delete(t.refused, index)
		t.keep(index, spec, p)
		status.State = attunev1.PointState_POINT_STATE_PLACED
		status.Mechanism, status.Reason = p.mechanism, p.reason
		status.Symbols, status.CostNanos, status.CostMeasured = p.symbols, p.cost, p.measured
		status.LateNanos = uint64(p.late)
		t.describe(index, status)
		t.placer.log.Info("measure point placed", "point", spec.GetId(), "pid", t.process.PID(),
			"mechanism", p.mechanism, "symbols", len(p.symbols))
	}
	t.placer.options.Status(status)
}

// serve chooses the mechanism. The caller holds t.mu.
func (t *tenant) serve(ctx context.Context, index uint16, spec *attunev1.MeasurePoint, held bool) (*placement, error) {
	switch target := spec.GetTarget().(type) {
	case *attunev1.MeasurePoint_Hook:
		return t.placeHook(index, spec, target.Hook)
	case *attunev1.MeasurePoint_Function:
		// Without images every mechanism says so itself.
		if images, err := t.images(); err == nil {
			// What an indirect function stands for is known in the process.
			if err := checkNames(images, target.Function); err != nil && !errors.Is(err, objfile.ErrIndirect) {
				return nil, err
			}
		}
		return t.placeFunction(ctx, index, spec, held, target.Function.GetDynamicCallsOnly())
	case *attunev1.MeasurePoint_Usdt:
		return t.placeUprobe(index, spec, byKernel{why: "a static probe stands within a function"})
	}
	return nil, fmt.Errorf("measure point %q has no target that is known here", spec.GetId())
}

// placeFunction takes the first of GOT, entry patches and uprobes that serves
// all that is asked for, and entry patches for some of it where none does.
func (t *tenant) placeFunction(ctx context.Context, index uint16, spec *attunev1.MeasurePoint, held, dynamic bool) (*placement, error) {
	captures, err := t.capturesOf(spec)
	if err != nil {
		return nil, err // whatever the mechanism
	}
	if captures.cost(spec) > costTrap {
		p, err := t.placeUprobe(index, spec, byKernel{
			why: "the kernel reads memory for less than DMLib, which would ask it at each hit", preferred: true,
		})
		if err == nil || errors.As(err, &patchedError{}) {
			return p, err
		}
	}
	why := errors.New("calls inside the object are wanted as well")
	if dynamic {
		p, err := t.placeGOT(ctx, index, spec, held)
		if err == nil {
			return p, nil
		}
		why = err
	}
	p, err := t.placePatch(ctx, index, spec, why.Error(), false)
	if err == nil {
		return p, nil
	}
	unpatchable := errors.Is(err, patch.ErrUnpatchable)
	by := byKernel{why: fmt.Sprintf("%v; entry patch: %v", why, err), yielding: errors.Is(err, sites.ErrWatched)}
	if before := t.whyKernel[index]; before != "" { // by now it is that the function is the kernel's
		by = byKernel{why: before}
		delete(t.whyKernel, index)
	}
	return t.placeUnpatched(ctx, index, spec, by, unpatchable)
}

// placeUnpatched leaves a function to the kernel. unpatchable says that some of what
// is asked for may still be patched.
func (t *tenant) placeUnpatched(ctx context.Context, index uint16, spec *attunev1.MeasurePoint, by byKernel, unpatchable bool) (*placement, error) {
	p, err := t.placeUprobe(index, spec, by)
	patched := patchedError{}
	switch {
	case err == nil:
		return p, nil
	case errors.As(err, &patched):
		return nil, patchedError{patched.numbers, by.why}
	}
	why := fmt.Errorf("%s; uprobe: %w", by.why, err)
	if unpatchable {
		if p, err = t.placePatch(ctx, index, spec, why.Error(), true); err == nil {
			return p, nil
		}
	}
	return nil, why
}
