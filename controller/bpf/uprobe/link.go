// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/cilium/ebpf/link"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// attachKey: a probe is attached once per file, however many processes map it.
type attachKey struct {
	file  inode
	point uint16
}

// attached is one point in one file. Guarded by attacher.mu, but for the
// immutable spec and symbols.
type attached struct {
	spec    Spec
	target  *target
	symbols []SymbolStatus
	spots   []bpf.Spot
	plans   []uint32
	records bool            // it delivers them
	links   []io.Closer     // of probes in all processes that map the file; none where narrow
	narrow  bool            // probes stand in the processes of the holders only
	holders map[int]*holder // by Spec.PID
}

// holder is a process for which a point is held, or is about to be (Spec.Watches).
type holder struct {
	users int
	links []io.Closer // where the point is narrow
}

// attacher attaches points to files, and detaches them. Its exported methods, and
// those of Attachment, may be called from any goroutine.
type attacher struct {
	options  Options
	watches  *watchTable
	records  *recorder
	plans    planTable
	detacher detacher

	translators translatorWatch

	// mu guards what follows; held while the kernel attaches (8 ms), never while
	// it detaches. It comes before the mutexes of plans, watches and ring.
	mu          sync.Mutex
	programs    *uprobePrograms // nil before the first Attach
	attached    map[attachKey]*attached
	closed      bool
	prices      prices
	whyUnpriced error // nil before prices are measured, too
}

// attach puts a point into a file. The caller holds mu, and has what is needed
// loaded.
func (a *attacher) attach(spec Spec, target *target, narrow bool) (*attached, error) {
	if err := a.watches.define(spec.Point, spec.config()); err != nil {
		return nil, err
	}
	p := &attached{spec: spec, target: target, narrow: narrow, holders: map[int]*holder{spec.PID: {users: 1}}, symbols: examine(spec, target, a.programs.kernel, a.prices)}
	p.addWatched()
	begun, err := a.watches.watchAll(spec)
	if err == nil {
		err = a.link(p)
	}
	if err != nil {
		a.watches.unwatchAll(begun)
		a.watches.undefine(spec.Point)
		a.detachProbes(p)
		return nil, err
	}
	if p.records = spec.Delivery != attunev1.Delivery_DELIVERY_AGGREGATE; p.records {
		a.records.begin()
	}
	return p, nil
}

// addWatched has a narrow point stand in all processes that are watched from the beginning.
func (p *attached) addWatched() {
	for _, w := range p.spec.Watches {
		if p.narrow && p.holders[w.PID] == nil {
			p.holders[w.PID] = &holder{}
		}
	}
}

// link plans all functions of p that are not refused, and attaches them where p is to
// stand. The caller holds mu.
func (a *attacher) link(p *attached) (err error) {
	if p.spots, err = a.planAll(p); err != nil {
		return err
	}
	if p.narrow {
		return a.linkHolders(p)
	}
	p.links, err = a.linkIn(p, 0)
	return err
}

// linkHolders attaches a narrow point in each process for which it is held, but for
// those that have executed a translator since.
func (a *attacher) linkHolders(p *attached) (err error) {
	for pid, h := range p.holders {
		if translatorOf(pid) != "" {
			continue
		}
		h.links, err = a.linkIn(p, pid)
		if err != nil && !errors.Is(err, procid.ErrGone) {
			return err
		}
	}
	return nil
}

// linkIn attaches all functions of p in one process, or with 0 in all that map the file,
// and notes those that the kernel refuses. The caller holds mu.
func (a *attacher) linkIn(p *attached, pid int) (all []io.Closer, err error) {
	executable, err := link.OpenExecutable(p.target.path())
	if err != nil {
		return nil, err
	}
	legs, err := a.programs.legs(p.spec)
	if err != nil {
		return nil, err
	}
	defer p.target.mapPages(p.spots)()
	if a.programs.multi && len(p.spots) > 0 {
		if all, err = a.linkAll(executable, legs, p.spots, pid); err == nil {
			return all, nil
		}
	}
	// One by one: the kernel has no other way, or refuses some function and
	// does not say which.
	for _, one := range p.spots {
		links, err := a.linkAll(executable, legs, []bpf.Spot{one}, pid)
		if err := ofNoFunction(err, pid, a.programs.multi); err != nil {
			a.detacher.detach(all, nil)
			return nil, err
		}
		if err != nil {
			refuse(p.symbols, one.Offset, err)
		}
		all = append(all, links...)
	}
	if len(all) == 0 {
		return nil, &RefusedError{Path: p.spec.Path, Symbols: p.symbols}
	}
	return all, nil
}

// planAll makes the plans of p, one for all symbols whose parameters lie alike,
// and lists where to probe: each offset once, since of two names for one
// function both would count.
func (a *attacher) planAll(p *attached) ([]bpf.Spot, error) {
	var spots []bpf.Spot
	known := make(map[uprobesPlan]uint32)
	for i := range p.symbols {
		symbol := &p.symbols[i]
		if symbol.Refused != "" {
			continue
		}
		plan, err := planOf(p.spec, symbol.Symbol, p.target.isGo)
		if errors.Is(err, errSpec) {
			return nil, err
		}
		if err != nil {
			symbol.refuse(err.Error())
			continue
		}
		number, ok := known[plan]
		if !ok {
			if number, err = a.plans.add(plan); err != nil {
				return nil, err
			}
			known[plan] = number
			p.plans = append(p.plans, number)
		}
		spots = append(spots, bpf.Spot{Offset: symbol.Offset, Counter: symbol.Counter, Cookie: uint64(number)})
	}
	slices.SortFunc(spots, func(a, b bpf.Spot) int { return cmp.Compare(a.Offset, b.Offset) })
	return slices.CompactFunc(spots, func(a, b bpf.Spot) bool { return a.Offset == b.Offset }), nil
}

// linkAll attaches all legs at all spots, or none.
func (a *attacher) linkAll(executable *link.Executable, legs []bpf.Probe, spots []bpf.Spot, pid int) ([]io.Closer, error) {
	spots = ofHolder(spots, pid)
	var links []io.Closer
	for _, leg := range legs {
		attached, err := leg.Attach(executable, spots, pid, a.programs.multi)
		if err != nil {
			a.detacher.detach(links, nil)
			return nil, err
		}
		links = append(links, attached)
	}
	return links, nil
}

// detach lets the kernel take the probes out without waiting for it. The caller
// holds mu.
func (a *attacher) detach(p *attached) {
	a.watches.undefine(p.spec.Point)
	a.plans.retire(p.plans)
	// The file comes last: whoever waits for its lease may write then.
	a.detachProbes(p, p.target.file)
}

// detachProbes detaches what link has attached, and closes more once the probes are out.
func (a *attacher) detachProbes(p *attached, more ...io.Closer) {
	links, plans, records := p.allLinks(), p.plans, p.records
	a.detacher.detach(links, func() {
		a.plans.release(plans)
		if records {
			a.records.end()
		}
		for _, closer := range more {
			_ = closer.Close() // only read
		}
	})
}

// allLinks are those of a point, wherever its probes stand.
func (p *attached) allLinks() []io.Closer {
	all := slices.Clone(p.links)
	for _, h := range p.holders {
		all = append(all, h.links...)
	}
	return all
}
