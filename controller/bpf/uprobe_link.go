// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// examine reads and judges the first instruction of each function. Reading
// also brings the page into memory: the first uprobe on a page that is not
// there draws a warning from the kernel.
func (p *uprobePrograms) examine(spec UprobeSpec, target *target) []SymbolStatus {
	symbols := make([]SymbolStatus, 0, len(spec.Symbols))
	for _, symbol := range spec.Symbols {
		status := SymbolStatus{Symbol: symbol}
		code := make([]byte, maxInstruction)
		n, err := target.file.ReadAt(code, int64(symbol.Offset))
		if n == 0 {
			status.Refused = fmt.Sprintf("read code at offset %#x: %v", symbol.Offset, err)
			symbols = append(symbols, status)
			continue
		}
		verdict := classify(code[:n], p.kernel)
		status.Instruction, status.Class, status.Refused = verdict.text, verdict.class, verdict.reason
		status.Cost = verdict.class.cost(spec.Place)
		symbols = append(symbols, status)
	}
	return symbols
}

// leg is one of the probes that a place needs.
type leg struct {
	program *ebpf.Program
	atExit  bool // by a return probe
}

// spot is where a probe goes: offsets in the file of the instruction and of
// the counter of its users, 0 for none.
type spot struct{ offset, counter uint64 }

// legs lists the probes in the order of attaching. Of a pair the exit comes
// first: a call that begins in between then has an exit too many, which is
// ignored, and not an entry that is remembered for ever.
func (p *uprobePrograms) legs(spec UprobeSpec) []leg {
	switch spec.Place {
	case attunev1.Place_PLACE_EXIT:
		return []leg{{p.objects.AtExit, !spec.returns()}}
	case attunev1.Place_PLACE_BOTH:
		return []leg{{p.objects.PairExit, true}, {p.objects.PairEntry, false}}
	default:
		return []leg{{p.objects.AtEntry, false}}
	}
}

// link attaches all functions of a that are not refused, and notes those that
// the kernel refuses. The caller holds mu.
func (u *Uprobes) link(a *attached, cookie uint64) error {
	executable, err := link.OpenExecutable(a.target.path())
	if err != nil {
		return err
	}
	wanted := accepted(a.symbols)
	defer a.target.mapPages(wanted)()
	if u.programs.multi && len(wanted) > 0 {
		if a.links, err = u.linkAll(executable, a.spec, wanted, cookie); err == nil {
			return nil
		}
	}
	// One by one: the kernel has no other way, or refuses some function and
	// does not say which.
	for _, one := range wanted {
		links, err := u.linkAll(executable, a.spec, []spot{one}, cookie)
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

// notPermitted: one perf event per function takes more than uprobe_multi does.
func (u *Uprobes) notPermitted(err error) error {
	remedy := privilegeRemedy
	if !u.programs.multi {
		remedy = "needs root or CAP_SYS_ADMIN before Linux 6.6"
	}
	return &UnsupportedError{uprobes, "not permitted", remedy, err}
}

// accepted lists where to probe, each offset once: of two names for one
// function, both would count.
func accepted(symbols []SymbolStatus) []spot {
	var spots []spot
	for _, symbol := range symbols {
		if symbol.Refused == "" {
			spots = append(spots, spot{symbol.Offset, symbol.Counter})
		}
	}
	slices.SortFunc(spots, func(a, b spot) int { return cmp.Compare(a.offset, b.offset) })
	return slices.CompactFunc(spots, func(a, b spot) bool { return a.offset == b.offset })
}

func refuse(symbols []SymbolStatus, offset uint64, err error) {
	reason := err.Error()
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, errNotSupported) {
		reason = "the kernel refuses to probe this instruction"
	}
	for i := range symbols {
		if symbols[i].Offset == offset {
			symbols[i].Refused, symbols[i].Class, symbols[i].Cost = reason, InstructionRefused, 0
		}
	}
}

// errNotSupported is ENOTSUPP of the kernel, which was never meant to leave it.
const errNotSupported = unix.Errno(524)

// linkAll attaches all probes of a spec at all spots, or none.
func (u *Uprobes) linkAll(executable *link.Executable, spec UprobeSpec, spots []spot, cookie uint64) ([]io.Closer, error) {
	var links []io.Closer
	for _, leg := range u.programs.legs(spec) {
		attached, err := u.programs.attach(executable, leg, spots, cookie)
		if err != nil {
			u.detachLinks(links)
			return nil, err
		}
		links = append(links, attached)
	}
	return links, nil
}

// attach puts one probe at each spot; without uprobe_multi there must be
// one only.
func (p *uprobePrograms) attach(executable *link.Executable, leg leg, spots []spot, cookie uint64) (link.Link, error) {
	if !p.multi {
		opts := &link.UprobeOptions{Address: spots[0].offset, RefCtrOffset: spots[0].counter, Cookie: cookie}
		if leg.atExit {
			return executable.Uretprobe("", leg.program, opts)
		}
		return executable.Uprobe("", leg.program, opts)
	}
	opts := &link.UprobeMultiOptions{Cookies: slices.Repeat([]uint64{cookie}, len(spots))}
	for _, s := range spots {
		opts.Addresses = append(opts.Addresses, s.offset)
		opts.RefCtrOffsets = append(opts.RefCtrOffsets, s.counter)
	}
	if leg.atExit {
		return executable.UretprobeMulti(nil, leg.program, opts)
	}
	return executable.UprobeMulti(nil, leg.program, opts)
}
