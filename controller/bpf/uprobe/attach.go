// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/bpf"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// attachKey: a probe is attached once per file, however many processes map it.
type attachKey struct {
	file  inode
	point uint16
}

// attached is one point in one file. Guarded by Uprobes.mu, but for the
// immutable spec and symbols.
type attached struct {
	spec    Spec
	target  *target
	symbols []SymbolStatus
	links   []io.Closer
	plans   []uint32
	users   int
}

// SymbolStatus tells what became of one function.
type SymbolStatus struct {
	Symbol
	// Instruction is the first instruction, Class how the kernel runs it.
	Instruction string
	Class       InstructionClass
	// Cost is what one hit takes from the application. Measured says that it was
	// measured on this machine, else it is that of another one.
	Cost     time.Duration
	Measured bool
	// Refused is the reason why the function is not probed; else empty.
	Refused string
}

func (s *SymbolStatus) refuse(reason string) {
	s.Refused, s.Class, s.Cost = reason, InstructionRefused, 0
}

// Attachment is one user's hold on a point in a file.
type Attachment struct {
	uprobes *Uprobes
	shared  *attached
	key     attachKey
	once    sync.Once
}

// RefusedError says that not one of the functions can be probed.
type RefusedError struct {
	// Path of the file.
	Path string
	// Symbols with the reason of each.
	Symbols []SymbolStatus
}

// Error names the first function and its reason.
func (e *RefusedError) Error() string {
	first := e.Symbols[0]
	return fmt.Sprintf("probe %s in %s: %s", first.Name, e.Path, first.Refused)
}

// Attach puts the point into a file, for all processes that map it, now or
// later; processes are watched from WatchProcess on. Attaching the same point
// to the same file again only takes a second hold. Some functions may be
// refused: see Attachment.Symbols. If all are, the error is a *RefusedError.
// The caller must Close the attachment.
func (u *Uprobes) Attach(spec Spec) (*Attachment, error) {
	spec, err := spec.normalised()
	if err != nil {
		return nil, err
	}
	target, err := openTarget(spec)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	key := attachKey{target.id, spec.Point}
	if held, err := u.share(key, spec); held != nil || err != nil {
		return held, closeAfter(err, target.file)
	}
	shared, err := u.attach(spec, target)
	if err != nil {
		return nil, closeAfter(err, target.file)
	}
	u.attached[key] = shared
	return &Attachment{uprobes: u, shared: shared, key: key}, nil
}

// share takes another hold on what is attached already, if it is.
func (u *Uprobes) share(key attachKey, spec Spec) (*Attachment, error) {
	if u.closed {
		return nil, ErrClosed
	}
	shared := u.attached[key]
	if shared == nil {
		return nil, nil
	}
	if !shared.spec.samePoint(spec) {
		return nil, fmt.Errorf("%w: point %d is attached to this file with other settings", errSpec, spec.Point)
	}
	shared.users++
	return &Attachment{uprobes: u, shared: shared, key: key}, nil
}

func (s Spec) samePoint(other Spec) bool {
	return s.Place == other.Place && s.Parameter == other.Parameter &&
		s.config().equal(other.config()) && reflect.DeepEqual(s.Symbols, other.Symbols)
}

func (u *Uprobes) attach(spec Spec, target *target) (*attached, error) {
	if target.isGo && spec.probesExit() && !spec.returns() {
		return nil, &bpf.UnsupportedError{
			Feature: "return probe in " + spec.Path, Reason: "Go moves its stacks, and a return probe would crash it",
			Remedy: "probe the entry, or the exit alone at its return instructions",
		}
	}
	if err := errors.Join(spec.checkProgram(), u.load()); err != nil {
		return nil, err
	}
	u.price()
	if err := u.watches.define(spec.Point, spec.config()); err != nil {
		return nil, err
	}
	a := &attached{spec: spec, target: target, users: 1, symbols: u.programs.examine(spec, target)}
	err := u.watchAll(spec)
	if err == nil {
		err = u.link(a)
	}
	if err != nil {
		u.unwatchAll(spec)
		u.watches.undefine(spec.Point)
		u.detachProbes(a)
		return nil, err
	}
	if spec.Delivery != attunev1.Delivery_DELIVERY_AGGREGATE {
		u.record()
	}
	return a, nil
}

// watchAll begins the spec's watches.
func (u *Uprobes) watchAll(spec Spec) error {
	for _, w := range spec.Watches {
		w.Point = spec.Point
		if err := u.Watch(w); err != nil {
			return err
		}
	}
	return nil
}

// unwatchAll ends them. What fails has not begun.
func (u *Uprobes) unwatchAll(spec Spec) {
	for _, w := range spec.Watches {
		_ = u.UnwatchProcess(w.PID, spec.Point)
	}
}

// record lets Run begin to poll. The caller holds mu.
func (u *Uprobes) record() {
	select {
	case <-u.recording:
	default:
		close(u.recording)
	}
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
	a.uprobes.mu.Lock()
	defer a.uprobes.mu.Unlock()
	return a.uprobes.programs.whyUnpriced
}

// Mechanism is "uprobe_multi", or "uprobe" where every function has a probe of
// its own, which takes 12 ms to attach and 100 ms to detach each; whyNot then
// says why.
func (a *Attachment) Mechanism() (mechanism, whyNot string) {
	a.uprobes.mu.Lock()
	defer a.uprobes.mu.Unlock()
	if programs := a.uprobes.programs; !programs.multi {
		return "uprobe", "uprobe_multi: " + programs.whyNot
	}
	return "uprobe_multi", ""
}

// Path of the file, as it was given.
func (a *Attachment) Path() string { return a.shared.spec.Path }

// Hold takes another hold on the same point in the same file; nil if this one
// was closed.
func (a *Attachment) Hold() *Attachment {
	u := a.uprobes
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || u.attached[a.key] != a.shared {
		return nil
	}
	a.shared.users++
	return &Attachment{uprobes: u, shared: a.shared, key: a.key}
}

// Close gives up this hold. With the last one nothing is taken any more from
// this moment on; the kernel detaches in the background, and until then, 50 ms
// as a rule, a hit costs what one in a process that is not watched costs. It is
// idempotent.
func (a *Attachment) Close() {
	a.once.Do(func() {
		u := a.uprobes
		u.mu.Lock()
		defer u.mu.Unlock()
		a.shared.users--
		if a.shared.users > 0 || u.attached[a.key] != a.shared {
			return
		}
		delete(u.attached, a.key)
		u.detach(a.shared)
	})
}

// detach lets the kernel take the probes out without waiting for it. The caller
// holds mu.
func (u *Uprobes) detach(a *attached) {
	u.watches.undefine(a.spec.Point)
	u.plans.retire(a.plans)
	u.detachProbes(a)
	u.detacher.detach([]io.Closer{a.target.file}, nil)
}

// detachProbes detaches what link has attached.
func (u *Uprobes) detachProbes(a *attached) {
	u.detacher.detach(a.links, func() { u.plans.release(a.plans) })
}
