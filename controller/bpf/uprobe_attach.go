// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

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
	spec    UprobeSpec
	target  *target
	symbols []SymbolStatus
	links   []io.Closer
	users   int
}

// SymbolStatus tells what became of one function.
type SymbolStatus struct {
	Symbol
	// Instruction is the first instruction, Class how the kernel runs it.
	Instruction string
	Class       InstructionClass
	// Cost is what one hit takes from the application, estimated.
	Cost time.Duration
	// Refused is the reason why the function is not probed; else empty.
	Refused string
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
func (u *Uprobes) Attach(spec UprobeSpec) (*Attachment, error) {
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
func (u *Uprobes) share(key attachKey, spec UprobeSpec) (*Attachment, error) {
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

func (s UprobeSpec) samePoint(other UprobeSpec) bool {
	return s.Place == other.Place && s.Parameter == other.Parameter &&
		s.config() == other.config() && slices.Equal(s.Symbols, other.Symbols)
}

func (u *Uprobes) attach(spec UprobeSpec, target *target) (*attached, error) {
	if target.isGo && spec.probesExit() && !spec.returns() {
		return nil, &UnsupportedError{
			"return probe in " + spec.Path, "Go moves its stacks, and a return probe would crash it",
			"probe the entry, or the exit alone at its return instructions", nil,
		}
	}
	register, err := parameterRegister(target.isGo, spec.Parameter)
	if err != nil {
		return nil, err
	}
	if err := u.load(); err != nil {
		return nil, err
	}
	if err := u.watches.define(spec.Point, spec.config()); err != nil {
		return nil, err
	}
	a := &attached{spec: spec, target: target, users: 1, symbols: u.programs.examine(spec, target)}
	if err := u.link(a, uint64(spec.Point)|uint64(register)<<16); err != nil {
		u.watches.undefine(spec.Point)
		u.detachLinks(a.links)
		return nil, err
	}
	if spec.Delivery != attunev1.Delivery_DELIVERY_AGGREGATE {
		u.record()
	}
	return a, nil
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

// Cost estimates the price of one hit: that of the dearest function.
func (a *Attachment) Cost() time.Duration {
	var dearest time.Duration
	for _, symbol := range a.shared.symbols {
		dearest = max(dearest, symbol.Cost)
	}
	return dearest
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

// Close gives up this hold. With the last one the kernel detaches, in the
// background: hits may be counted for another 100 ms. It is idempotent.
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

// detach lets the kernel take the probes out, which takes 32 to 104 ms each,
// without waiting for it. The caller holds mu.
func (u *Uprobes) detach(a *attached) {
	u.watches.undefine(a.spec.Point)
	u.detachLinks(append(a.links, a.target.file))
}

func (u *Uprobes) detachLinks(links []io.Closer) {
	for _, link := range links {
		u.detaching.Go(func() {
			// Closing a valid descriptor does not fail.
			_ = link.Close()
		})
	}
}
