// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/budget"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/sites"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// placement is one point in one process. It is guarded by tenant.mu.
type placement struct {
	spec        *attunev1.MeasurePoint // tells it from an earlier point of the same index
	mechanism   string
	reason      string
	why         string // nothing cheaper than patches serves
	symbols     []string
	cost        float64
	measured    bool // the cost, on this machine
	expected    bool // from the first hit on, though placed later
	late        time.Duration
	shared      bool // its hook is another point's
	captured    captures
	preferred   bool // the kernel serves it for less, as it was asked for
	load        budget.Load
	locals      []int // hooks and stubs that serve it
	attachments []heldAttachment
	atReturn    bool // some of them are return probes
	yielding    bool // patches would serve, were it not for another point's uprobe
	busy        bool // patches would serve, had the process not been busy
	partly      bool // some functions were not patched because the process was busy
}

// heldAttachment is what the kernel watches in a file, with the functions that are the
// kernel's meanwhile.
type heldAttachment struct {
	*uprobe.Attachment

	kept *sites.Kept
}

// hold takes another hold on it; false if it was closed.
func (a heldAttachment) hold() (heldAttachment, bool) {
	if again := a.Hold(); again != nil {
		return heldAttachment{again, a.kept.Again()}, true
	}
	return heldAttachment{}, false
}

// addAttachment takes in what the kernel watches; refused is why some of it is not.
func (p *placement) addAttachment(attachment heldAttachment, refused error) {
	p.attachments = append(p.attachments, attachment)
	p.mechanism, _ = attachment.Mechanism()
	if cost, measured := attachment.Cost(); float64(cost.Nanoseconds()) > p.cost {
		p.cost, p.measured = float64(cost.Nanoseconds()), measured
	}
	if refused != nil {
		p.reason = refused.Error()
	}
	for _, s := range attachment.Symbols() {
		switch {
		case s.Refused != "":
			p.reason = fmt.Sprintf("%s: %s", s.Name, s.Refused)
		case !slices.Contains(p.symbols, s.Name): // a function may return at several places
			p.symbols = append(p.symbols, s.Name)
		}
	}
}

// explain adds what the first attachment has to say to the reason.
func (p *placement) explain() {
	if _, whyNot := p.attachments[0].Mechanism(); whyNot != "" {
		p.reason = strings.TrimPrefix(p.reason+"; "+whyNot, "; ")
	}
	if why := p.attachments[0].WhyEstimated(); why != nil {
		p.reason += fmt.Sprintf("; what it costs could not be measured here: %v", why)
	}
}

// reckon notes what a hit costs that DMLib takes.
func (p *placement) reckon(spec *attunev1.MeasurePoint) {
	p.cost = costOfHit(p.mechanism, spec, !p.captured.program.Empty()) + p.captured.cost(spec)
	if p.shared {
		p.cost += costShared
	}
}

// moves says whether DMLib may serve a point at a level for less than the kernel,
// which serves it as it was asked for.
func (p *placement) moves(spec *attunev1.MeasurePoint, level budget.Level) bool {
	return p.preferred && level < budget.Off && p.captured.cost(delivered(spec, level)) <= costTrap
}

// costsOf estimates what a placement would cost at each level. What the kernel
// does costs the same whatever is done with the hit: the trap is what takes time.
func costsOf(p *placement, spec *attunev1.MeasurePoint) (costs budget.Costs) {
	for level := asked(spec); level < budget.Off; level++ {
		after := *p
		if p.moves(spec, level) {
			after.attachments, after.mechanism = nil, MechanismPatch
		}
		if len(after.attachments) == 0 {
			after.reckon(delivered(spec, level))
		}
		costs[level] = after.cost
	}
	return costs
}

// needed says whether another point needs a uprobe where this one has some.
func (p *placement) needed() bool {
	return slices.ContainsFunc(p.attachments, func(a heldAttachment) bool { return !a.kept.Idle() })
}

// yields says whether a breakpoint at an entry with one of these numbers takes
// something from the placement.
func (p *placement) yields(numbers []int) bool {
	return p.mechanism == MechanismPatch && p.spec.GetPlace() != attunev1.Place_PLACE_EXIT &&
		slices.ContainsFunc(p.locals, func(local int) bool { return slices.Contains(numbers, local-shm.HookCount) })
}

// addNumbers adds the numbers of what serves the placement.
func (p *placement) addNumbers(numbers []int) []int {
	for _, local := range p.locals {
		if number := local - shm.HookCount; !slices.Contains(numbers, number) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}
