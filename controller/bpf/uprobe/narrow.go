// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"fmt"

	"github.com/attune-hpc/attune/controller/bpf"
)

// mustBeNarrow says whether a point is to stand in the spec's process only, and refuses it
// where that has to be and is not possible, or of no use. A return probe is to, if uprobe_multi
// can: it ends a process that throws exceptions or switches stacks in the function, and of the
// others that map the file nobody knows whether they do. One perf event for each process would
// take the kernel 12 ms to attach, and all of them run at each return. The caller holds mu.
func (a *attacher) mustBeNarrow(spec Spec, target *target) (bool, error) {
	all, err := findTranslators()
	if err != nil {
		return false, err
	}
	for pid, tool := range all {
		if pid == spec.PID || (spec.PID == 0 || !a.canBeNarrow()) && target.mappedBy(pid) {
			return false, translated(spec, pid, tool)
		}
	}
	return (len(all) > 0 || a.programs.multi && spec.changesReturns()) && spec.PID != 0 && a.canBeNarrow(), nil
}

// translated is why a point is kept out of a file.
func translated(spec Spec, pid int, tool string) error {
	return &bpf.UnsupportedError{
		Feature: "uprobe in " + spec.Path,
		Reason:  fmt.Sprintf("process %d runs under %s and has mapped it: the kernel's breakpoint would end it", pid, tool),
		Remedy:  "ask again when it has ended",
	}
}

func (a *attacher) canBeNarrow() bool {
	return !a.programs.multi || bpf.MultiInOneProcess(a.programs.kernel)
}

// narrowAll takes all points out of the processes for which they are not held, because of
// a process that was started with a tool. Hits while it does so, some tenths of a
// millisecond, are not taken.
func (a *attacher) narrowAll(pid int, tool string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.canBeNarrow() {
		return
	}
	for _, p := range a.attached {
		if h := p.holders[pid]; h != nil { // it executed the tool since: its probes would go into that
			a.detacher.detach(h.links, nil)
			h.links = nil
		}
		if p.narrow || p.holders[0] != nil {
			continue
		}
		err := a.narrow(p)
		switch {
		case a.options.Log == nil:
		case err != nil:
			a.options.Log.Warn("kernel probes are lost to a translated program", "file", p.spec.Path, "point", p.spec.Point, "pid", pid, "tool", tool, "error", err)
		default:
			a.options.Log.Info("kernel probes were moved for a translated program, some hits are missed", "file", p.spec.Path, "point", p.spec.Point, "pid", pid, "tool", tool)
		}
	}
}

// narrow takes a point out of the processes for which it is not held. It has new plans:
// of two probes at one place with one plan both would count.
func (a *attacher) narrow(p *attached) error {
	wide, plans := p.links, p.plans
	a.plans.retire(plans)
	p.links, p.plans, p.narrow = nil, nil, true
	err := a.link(p)
	a.detacher.detach(wide, func() { a.plans.release(plans) })
	return err
}

// hold takes a hold on a point for a process, and refuses it for one that is translated.
// The caller holds mu.
func (a *attacher) hold(p *attached, pid int) error {
	if tool := translatorOf(pid); tool != "" {
		return translated(p.spec, pid, tool)
	}
	h := p.holders[pid]
	if h == nil {
		h = &holder{}
		if p.narrow {
			links, err := a.linkIn(p, pid)
			if err != nil {
				return err
			}
			h.links = links
		}
		p.holders[pid] = h
	}
	h.users++
	return nil
}

// release gives a hold up, and says whether there are others. The caller holds mu.
func (a *attacher) release(p *attached, pid int) bool {
	h := p.holders[pid]
	if h.users--; h.users > 0 {
		return true
	}
	delete(p.holders, pid)
	if !p.held() {
		p.links = append(p.links, h.links...) // detach closes them
		return false
	}
	a.detacher.detach(h.links, nil)
	return true
}

// held says whether the point is held for some process.
func (p *attached) held() bool {
	for _, h := range p.holders {
		if h.users > 0 {
			return true
		}
	}
	return false
}
