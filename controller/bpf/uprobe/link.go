// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
)

// examine reads and judges the first instruction of each function. Reading
// also brings the page into memory: the first uprobe on a page that is not
// there draws a warning from the kernel.
func (p *uprobePrograms) examine(spec Spec, target *target) []SymbolStatus {
	symbols := make([]SymbolStatus, 0, len(spec.Symbols))
	for _, symbol := range spec.Symbols {
		status := SymbolStatus{Symbol: symbol}
		status.Offset = PlaceOf(target.file, symbol)
		code := make([]byte, maxInstruction)
		n, err := target.file.ReadAt(code, int64(status.Offset))
		if n == 0 {
			status.Refused = fmt.Sprintf("read code at offset %#x: %v", symbol.Offset, err)
			symbols = append(symbols, status)
			continue
		}
		verdict := classify(code[:n], p.kernel)
		status.Instruction, status.Class, status.Refused = verdict.text, verdict.class, verdict.reason
		status.Cost, status.Measured = p.prices.of(verdict.class, spec.Place)
		symbols = append(symbols, status)
	}
	return symbols
}

// PlaceOf returns where in its file a symbol is probed: behind the landing pad
// of indirect calls, which the kernel would single-step.
func PlaceOf(file io.ReaderAt, symbol Symbol) uint64 {
	code := make([]byte, len(landingPad))
	if n, _ := file.ReadAt(code, int64(symbol.Offset)); n > 0 && bytes.Equal(code, landingPad) {
		return symbol.Offset + uint64(n)
	}
	return symbol.Offset
}

// leg is one of the probes that a place needs.
type leg struct {
	name    string
	program *ebpf.Program
	atExit  bool // by a return probe
}

// spot is where a probe goes: offsets in the file of the instruction and of
// the counter of its users, 0 for none; and the number of its plan.
type spot struct{ offset, counter, plan uint64 }

// link attaches all functions of a that are not refused, and notes those that
// the kernel refuses. The caller holds mu.
func (u *Uprobes) link(a *attached) error {
	executable, err := link.OpenExecutable(a.target.path())
	if err != nil {
		return err
	}
	legs, err := u.legs(a.spec)
	if err != nil {
		return err
	}
	wanted, err := u.planAll(a)
	if err != nil {
		return err
	}
	defer a.target.mapPages(wanted)()
	if u.programs.multi && len(wanted) > 0 {
		if a.links, err = u.linkAll(executable, legs, wanted); err == nil {
			return nil
		}
	}
	// One by one: the kernel has no other way, or refuses some function and
	// does not say which.
	for _, one := range wanted {
		links, err := u.linkAll(executable, legs, []spot{one})
		if errors.Is(err, os.ErrPermission) {
			return u.notPermitted(err)
		}
		if err != nil {
			refuse(a.symbols, one.offset, err)
		}
		a.links = append(a.links, links...)
	}
	if len(a.links) == 0 {
		return &RefusedError{Path: a.spec.Path, Symbols: a.symbols}
	}
	return nil
}

// planAll makes the plans of a, one for all symbols whose parameters lie alike,
// and lists where to probe: each offset once, since of two names for one
// function both would count.
func (u *Uprobes) planAll(a *attached) ([]spot, error) {
	var spots []spot
	known := make(map[uprobesPlan]uint32)
	for i := range a.symbols {
		symbol := &a.symbols[i]
		if symbol.Refused != "" {
			continue
		}
		plan, err := planOf(a.spec, symbol.Symbol, a.target.isGo)
		if errors.Is(err, errSpec) {
			return nil, err
		}
		if err != nil {
			symbol.refuse(err.Error())
			continue
		}
		number, ok := known[plan]
		if !ok {
			if number, err = u.plans.add(plan); err != nil {
				return nil, err
			}
			known[plan] = number
			a.plans = append(a.plans, number)
		}
		spots = append(spots, spot{symbol.Offset, symbol.Counter, uint64(number)})
	}
	slices.SortFunc(spots, func(a, b spot) int { return cmp.Compare(a.offset, b.offset) })
	return slices.CompactFunc(spots, func(a, b spot) bool { return a.offset == b.offset }), nil
}

// notPermitted: one perf event per function takes more than uprobe_multi does.
func (u *Uprobes) notPermitted(err error) error {
	remedy := bpf.PrivilegeRemedy
	if !u.programs.multi {
		remedy = "needs root or CAP_SYS_ADMIN before Linux 6.6"
	}
	return &bpf.UnsupportedError{Feature: uprobes, Reason: "not permitted", Remedy: remedy, Err: err}
}

func refuse(symbols []SymbolStatus, offset uint64, err error) {
	reason := err.Error()
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, errNotSupported) {
		reason = "the kernel refuses to probe this instruction"
	}
	for i := range symbols {
		if symbols[i].Offset == offset {
			symbols[i].refuse(reason)
		}
	}
}

// errNotSupported is ENOTSUPP of the kernel, which was never meant to leave it.
const errNotSupported = unix.Errno(524)

// linkAll attaches all legs at all spots, or none.
func (u *Uprobes) linkAll(executable *link.Executable, legs []leg, spots []spot) ([]io.Closer, error) {
	var links []io.Closer
	for _, leg := range legs {
		attached, err := u.programs.attach(executable, leg, spots)
		if err != nil {
			u.detacher.detach(links, nil)
			return nil, err
		}
		links = append(links, attached)
	}
	return links, nil
}

// attach puts one probe at each spot; without uprobe_multi there must be
// one only.
func (p *uprobePrograms) attach(executable *link.Executable, leg leg, spots []spot) (link.Link, error) {
	if !p.multi {
		opts := &link.UprobeOptions{Address: spots[0].offset, RefCtrOffset: spots[0].counter, Cookie: spots[0].plan}
		if leg.atExit {
			return executable.Uretprobe("", leg.program, opts)
		}
		return executable.Uprobe("", leg.program, opts)
	}
	opts := &link.UprobeMultiOptions{}
	for _, s := range spots {
		opts.Addresses = append(opts.Addresses, s.offset)
		opts.RefCtrOffsets = append(opts.RefCtrOffsets, s.counter)
		opts.Cookies = append(opts.Cookies, s.plan)
	}
	if leg.atExit {
		return executable.UretprobeMulti(nil, leg.program, opts)
	}
	return executable.UprobeMulti(nil, leg.program, opts)
}
