// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/bpf"
)

// ErrClosed is returned by Attach after Close.
var ErrClosed = errors.New("uprobes are closed")

// Attachment is one user's hold on a point in a file.
type Attachment struct {
	attacher *attacher
	shared   *attached
	key      attachKey
	pid      int
	once     sync.Once
}

// Prepare loads what all attachments need and measures prices, so that the first one takes
// less time. It is idempotent.
func (a *attacher) Prepare() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return ErrClosed
	}
	if err := a.load(); err != nil {
		return err
	}
	a.price()
	return nil
}

// Attach puts the point into a file, for all processes that map it, now or
// later, or for the spec's process alone, where others might not survive it
// (see Spec.PID); processes are watched from Watch on. Attaching the same point
// to the same file again only takes a second hold. Some functions may be
// refused: see Attachment.Symbols. If all are, the error is a *RefusedError.
// The caller must Close the attachment.
func (a *attacher) Attach(spec Spec) (*Attachment, error) {
	spec, err := spec.normalised()
	if err != nil {
		return nil, err
	}
	target, err := openTarget(spec)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := attachKey{target.id, spec.Point}
	if held, err := a.share(key, spec); held != nil || err != nil {
		return held, closeAfter(err, target.file)
	}
	shared, err := a.attachFirst(spec, target)
	if err != nil {
		return nil, closeAfter(err, target.file)
	}
	a.attached[key] = shared
	return &Attachment{attacher: a, shared: shared, key: key, pid: spec.PID}, nil
}

// share takes another hold on what is attached already, if it is.
func (a *attacher) share(key attachKey, spec Spec) (*Attachment, error) {
	if a.closed {
		return nil, ErrClosed
	}
	shared := a.attached[key]
	if shared == nil {
		return nil, nil
	}
	if !shared.spec.samePoint(spec) {
		return nil, fmt.Errorf("%w: point %d is attached to this file with other settings", errSpec, spec.Point)
	}
	if err := a.hold(shared, spec.PID); err != nil {
		return nil, err
	}
	return &Attachment{attacher: a, shared: shared, key: key, pid: spec.PID}, nil
}

func (s Spec) samePoint(other Spec) bool {
	return s.Place == other.Place && s.Parameter == other.Parameter &&
		s.config().equal(other.config()) && reflect.DeepEqual(s.Symbols, other.Symbols)
}

// attachFirst attaches a point that is not in the file yet. With the first one of
// all it loads what is needed and measures prices. The caller holds mu.
func (a *attacher) attachFirst(spec Spec, target *target) (*attached, error) {
	if target.isGo && spec.changesReturns() {
		return nil, &bpf.UnsupportedError{
			Feature: "return probe in " + spec.Path, Reason: "Go moves its stacks, and a return probe would crash it",
			Remedy: "probe the entry, or the exit alone at its return instructions",
		}
	}
	if err := errors.Join(spec.checkProgram(), a.load()); err != nil {
		return nil, err
	}
	narrow, err := a.mustBeNarrow(spec, target)
	if err != nil {
		return nil, err
	}
	a.price()
	return a.attach(spec, target, narrow)
}

// load loads what all points need, once.
func (a *attacher) load() error {
	if a.programs != nil {
		return nil
	}
	p, err := loadPrograms(a.options)
	if err != nil {
		return err
	}
	err = errors.Join(
		a.records.ring.open(p.maps.RecordRing, p.maps.RingMemory, p.ringBytes),
		a.plans.open(p.maps.Plans),
		a.watches.open(&p.maps),
	)
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", uprobes, err), a.unload(p))
	}
	a.programs = p
	a.translators.start(a.narrowAll, a.options.Log)
	return nil
}

// unload is the opposite.
func (a *attacher) unload(p *uprobePrograms) error {
	return errors.Join(a.records.ring.close(), a.plans.close(), a.watches.close(), p.close())
}

// Symbols returns the functions with what became of each. Owned by the caller.
func (a *Attachment) Symbols() []SymbolStatus { return slices.Clone(a.shared.symbols) }

// Cost is the price of one hit at the dearest function, and whether it was
// measured on this machine.
func (a *Attachment) Cost() (dearest time.Duration, measured bool) {
	for _, symbol := range a.shared.symbols {
		if symbol.Cost > dearest {
			dearest, measured = symbol.Cost, symbol.Measured
		}
	}
	return dearest, measured
}

// WhyEstimated says why costs were not measured on this machine; nil if they were.
func (a *Attachment) WhyEstimated() error {
	a.attacher.mu.Lock()
	defer a.attacher.mu.Unlock()
	return a.attacher.whyUnpriced
}

// Mechanism is "uprobe_multi", or "uprobe" where every function has a probe of
// its own, which takes 12 ms to attach and 100 ms to detach each; whyNot then
// says why.
func (a *Attachment) Mechanism() (mechanism, whyNot string) {
	a.attacher.mu.Lock()
	defer a.attacher.mu.Unlock()
	if programs := a.attacher.programs; !programs.multi {
		return "uprobe", "uprobe_multi: " + programs.whyNot
	}
	return "uprobe_multi", ""
}

// Everywhere says whether the probes stand in all processes that map the file, at this moment.
func (a *Attachment) Everywhere() bool {
	a.attacher.mu.Lock()
	defer a.attacher.mu.Unlock()
	return !a.shared.narrow
}

// Path of the file, as it was given.
func (a *Attachment) Path() string { return a.shared.spec.Path }

// Hold takes another hold on the same point in the same file; nil if this one
// was closed.
func (a *Attachment) Hold() *Attachment {
	u := a.attacher
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || u.attached[a.key] != a.shared {
		return nil
	}
	if u.hold(a.shared, a.pid) != nil {
		return nil // the process has ended, or is translated by now
	}
	return &Attachment{attacher: u, shared: a.shared, key: a.key, pid: a.pid}
}

// Close gives up this hold. With the last one nothing is taken any more from
// this moment on; the kernel detaches in the background, and until then, 50 ms
// as a rule, a hit costs what one in a process that is not watched costs. It is
// idempotent.
func (a *Attachment) Close() {
	a.once.Do(func() {
		u := a.attacher
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.attached[a.key] != a.shared || u.release(a.shared, a.pid) {
			return
		}
		delete(u.attached, a.key)
		u.detach(a.shared)
	})
}

// detachAll detaches everything, and lets nobody attach any more. It returns what
// is loaded, and whether this was the first call.
func (a *attacher) detachAll() (programs *uprobePrograms, first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, a.closed = !a.closed, true
	for key, p := range a.attached {
		delete(a.attached, key)
		a.detach(p)
	}
	return a.programs, first
}
