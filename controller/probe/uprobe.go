// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// byKernel says how the kernel comes to serve a point.
type byKernel struct {
	// why nothing cheaper serves.
	why string
	// yielding says that patches would serve, were it not for the uprobe of
	// another point.
	yielding bool
	// preferred says that DMLib would serve for more, by what it captures.
	preferred bool
	// watches begin before anything is in place, where patches give way.
	watches []uprobe.Watch
}

// placeUprobe lets the kernel watch every matching function or static probe of
// every matching object that the process maps. The error is a patchedError where
// patches have to give way before.
func (t *tenant) placeUprobe(index uint16, spec *attunev1.MeasurePoint, by byKernel) (*placement, error) {
	uprobes, err := t.placer.options.Uprobes()
	if err != nil {
		return nil, err
	}
	images, err := t.images()
	if err != nil {
		return nil, err
	}
	captures, err := t.capturesOf(spec)
	if err != nil {
		return nil, err
	}
	p := &placement{reason: by.why, yielding: by.yielding, preferred: by.preferred, captured: captures}
	a := attaching{tenant: t, uprobes: uprobes, index: index, spec: spec, captures: captures, images: images, by: by, placement: p}
	if err := a.all(); err != nil {
		t.unwatch(index, p)
		return nil, err
	}
	p.explain()
	if err := t.placer.watch(uprobes, t, index, captures.globals); err != nil {
		t.unwatch(index, p)
		return nil, err
	}
	p.expected = uprobes.Expected(t.process.PID(), index)
	if len(spec.GetProcesses()) == 0 {
		t.expectMore(uprobes, index, images, p.attachments)
	}
	return p, nil
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

// attaching is a point on its way into the files that a process maps.
type attaching struct {
	tenant    *tenant
	uprobes   *uprobe.Uprobes
	index     uint16
	spec      *attunev1.MeasurePoint
	captures  captures
	images    []objfile.Image // of the process
	by        byKernel
	placement *placement // what it becomes
}

// all attaches to the images that the point is meant for. One that refuses is no
// reason to leave the others, but a patchedError is.
func (a attaching) all() error {
	object, what := targetOf(a.spec)
	var errs []error
	for _, image := range a.images {
		if !watched(image, object) {
			continue
		}
		err := a.one(image)
		if errors.As(err, &patchedError{}) {
			return err
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	switch {
	case len(a.placement.attachments) > 0:
		return nil
	case len(errs) > 0:
		return errors.Join(errs...)
	}
	return fmt.Errorf("no object of the process has %s", what)
}

// one attaches to what the point is meant for in an image, if there is any.
func (a attaching) one(image objfile.Image) error {
	symbols, refused := spotsOf(image, a.spec)
	if len(symbols) == 0 {
		return refused
	}
	if err := a.takeReturns(symbols); err != nil {
		return err
	}
	// The file that is mapped, and no newer one with its name: the offsets are
	// not those of that one, and a probe in the middle of an instruction would
	// kill who runs it.
	file, err := image.OpenFile()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // read only; Attach keeps its own
	kept, err := a.tenant.placer.leaveToKernel(image, file, symbols, !a.by.yielding)
	if err != nil {
		return err
	}
	if len(a.by.watches) == 0 { // else patches give way just now
		good, touched := a.tenant.untouched(image, file, symbols)
		if symbols, refused = good, errors.Join(refused, touched); len(symbols) == 0 {
			kept.Return()
			return refused
		}
	}
	attachment, err := a.attach(image, file, symbols)
	if err != nil {
		a.tenant.placer.giveBack(kept) // some probes may have been in place
		return err
	}
	a.placement.addAttachment(heldAttachment{attachment, kept}, refused)
	return nil
}

// takeReturns notes that return probes are needed, and refuses them where an exception
// may pass one.
func (a attaching) takeReturns(symbols []uprobe.Symbol) error {
	place := a.spec.GetPlace()
	if place != attunev1.Place_PLACE_EXIT && place != attunev1.Place_PLACE_BOTH || symbols[0].Return {
		return nil
	}
	a.placement.atReturn = true
	return a.tenant.throws(a.images)
}

func (a attaching) attach(image objfile.Image, file *os.File, symbols []uprobe.Symbol) (*uprobe.Attachment, error) {
	return a.uprobes.Attach(uprobe.Spec{
		File: file, Path: image.Path, Symbols: symbols, Point: a.index,
		Place: a.spec.GetPlace(), Parameter: a.spec.GetParameter(), Delivery: a.spec.GetDelivery(),
		SampleMask: powerOfTwo(a.spec.GetSampleEvery()) - 1, CoarseTime: a.spec.GetCoarseTime(),
		MinValue: a.spec.GetMinValue(), MaxValue: a.spec.GetMaxValue(),
		Program: a.captures.program, Watches: a.by.watches,
	})
}

// heldAttachment is what the kernel watches in a file, with the functions that are the
// kernel's meanwhile.
type heldAttachment struct {
	*uprobe.Attachment

	kept *sites.Kept
}

// hold takes another hold on it; false if it was closed.
func (a heldAttachment) hold() (heldAttachment, bool) {
	again := a.Hold()
	if again == nil {
		return heldAttachment{}, false
	}
	return heldAttachment{again, a.kept.Again()}, true
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

// unwatch stops the kernel's probes of a placement.
func (t *tenant) unwatch(index uint16, p *placement) {
	if len(p.attachments) == 0 {
		return
	}
	if uprobes, err := t.placer.options.Uprobes(); err == nil {
		if err := t.placer.unwatch(uprobes, t, index); err != nil {
			t.placer.log.Warn("uprobe", "error", err)
		}
	}
	for _, a := range p.attachments {
		a.Close()
		t.placer.giveBack(a.kept)
	}
}
