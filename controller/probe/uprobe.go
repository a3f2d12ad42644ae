// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/probe/symbols"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// uprobes has the kernel serve points of one process. It is guarded by tenant.mu.
type uprobes struct {
	*host
	kernel *kernel
}

// place lets the kernel watch every matching function or static probe of
// every matching object that the process maps. The error is a patchedError where
// patches have to give way before.
func (u *uprobes) place(index uint16, spec *attunev1.MeasurePoint, by byKernel) (*placement, error) {
	loaded, err := u.options.Uprobes()
	if err != nil {
		return nil, err
	}
	images, err := u.images()
	if err != nil {
		return nil, err
	}
	captures, err := u.capturesOf(spec)
	if err != nil {
		return nil, err
	}
	p := &placement{reason: by.why, yielding: by.yielding, busy: by.busy, preferred: by.preferred, captured: captures}
	a := attaching{uprobes: u, loaded: loaded, index: index, spec: spec, images: images, by: by, placement: p}
	if err := a.all(); err != nil {
		u.stop(index, p)
		return nil, err
	}
	if more := captures.costInKernel(); more > 0 {
		p.cost, p.measured = p.cost+more, false
	}
	p.explain()
	if err := u.kernel.watches.begin(loaded, u.host, index, captures); err != nil {
		u.stop(index, p)
		return nil, err
	}
	p.expected = loaded.Expected(u.process.PID(), index)
	if meantForAll(spec) {
		u.expectMore(loaded, index, images, p.attachments)
	}
	return p, nil
}

// expectedAhead is how many processes like one that is watched are expected at a
// time: what a job starts on a node at once.
const expectedAhead = 4

// expectMore has processes of the same program and user watched from their first
// hit on: nobody is fast enough to name a process before it calls something. The
// probes stay on the program's file, and on no library's, when the last process
// has ended: other programs would pay for those. What a process counted that
// turns out not to belong is never asked for. Probes that stand in single processes, as those
// of returns do, are of no use to others.
func (u *uprobes) expectMore(loaded *uprobe.Uprobes, point uint16, images []objfile.Image, attachments []heldAttachment) {
	uid, err := procid.UserID(u.process.PID())
	i := slices.IndexFunc(images, objfile.Image.Main)
	if err != nil || i < 0 {
		return // it has ended, or its file cannot be opened any more
	}
	attachments = slices.DeleteFunc(slices.Clone(attachments), func(a heldAttachment) bool { return !a.Everywhere() })
	if len(attachments) == 0 {
		return
	}
	program := images[i]
	e := uprobe.Expectation{Device: program.Device, Inode: program.Inode, UID: uid, Point: point}
	if err := loaded.Expect(e, expectedAhead); err != nil {
		u.log.Debug("processes are not expected", "point", point, "error", err)
		return
	}
	for _, a := range attachments {
		if a.Path() != program.Path {
			continue
		}
		if again, ok := a.hold(); ok {
			u.kernel.stand(point, again)
		}
	}
}

// attaching is a point on its way into the files that a process maps.
type attaching struct {
	uprobes   *uprobes
	loaded    *uprobe.Uprobes
	index     uint16
	spec      *attunev1.MeasurePoint
	images    []objfile.Image // of the process
	by        byKernel
	placement *placement // what it becomes
}

// all attaches to the images that the point is meant for. One that refuses is no
// reason to leave the others, but a patchedError is.
func (a attaching) all() error {
	object, what := symbols.TargetOf(a.spec)
	var errs []error
	for _, image := range a.images {
		if !symbols.Watched(image, object) {
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
	spots, refused := symbols.SpotsOf(image, a.spec)
	if len(spots) == 0 {
		return refused
	}
	if err := a.takeReturns(spots); err != nil {
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
	kept, err := a.uprobes.kernel.leaveToKernel(image, file, spots, !a.by.yielding && !a.by.busy)
	if err != nil {
		return err
	}
	if len(a.by.watches) == 0 { // else patches give way just now
		good, touched := a.uprobes.untouched(image, file, spots)
		if spots, refused = good, errors.Join(refused, touched); len(spots) == 0 {
			kept.Return()
			return refused
		}
	}
	attachment, err := a.attach(image, file, spots)
	if err != nil {
		a.uprobes.kernel.giveBack(kept) // some probes may have been in place
		return err
	}
	a.placement.addAttachment(heldAttachment{attachment, kept}, refused)
	return nil
}

// takeReturns notes that return probes are needed, and refuses them where one could end the
// process.
func (a attaching) takeReturns(spots []uprobe.Symbol) error {
	place := a.spec.GetPlace()
	if place != attunev1.Place_PLACE_EXIT && place != attunev1.Place_PLACE_BOTH || spots[0].Return {
		return nil
	}
	a.placement.atReturn = true
	return a.uprobes.returnProbes(a.images)
}

// survives says that return probes would not end the process, if the point needs them.
func (u *uprobes) survives(spec *attunev1.MeasurePoint) bool {
	if spec.GetPlace() != attunev1.Place_PLACE_BOTH {
		return true
	}
	images, err := u.images()
	return err == nil && u.returnProbes(images) == nil
}

func (a attaching) attach(image objfile.Image, file *os.File, spots []uprobe.Symbol) (*uprobe.Attachment, error) {
	return a.loaded.Attach(uprobe.Spec{
		File: file, Path: image.Path, Symbols: spots, Point: a.index,
		Place: a.spec.GetPlace(), Parameter: a.spec.GetParameter(), Delivery: a.spec.GetDelivery(),
		PID: a.uprobes.process.PID(), SampleMask: powerOfTwo(a.spec.GetSampleEvery()) - 1, CoarseTime: a.spec.GetCoarseTime(),
		MinValue: a.spec.GetMinValue(), MaxValue: a.spec.GetMaxValue(),
		Program: a.placement.captured.program, Watches: a.by.watches,
	})
}

// stop stops the kernel's probes of a placement.
func (u *uprobes) stop(index uint16, p *placement) {
	if len(p.attachments) == 0 {
		return
	}
	if loaded, err := u.options.Uprobes(); err == nil {
		if err := u.kernel.watches.end(loaded, u.host, index); err != nil {
			u.log.Warn("uprobe", "error", err)
		}
	}
	for _, a := range p.attachments {
		u.kernel.release(a)
	}
}

// stopWatching ends a watch that no attachment of this process knows of.
func (u *uprobes) stopWatching(index uint16) {
	if loaded, err := u.options.Uprobes(); err == nil {
		_ = loaded.UnwatchProcess(u.process.PID(), index) // it may not have begun
	}
}
