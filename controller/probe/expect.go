// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"os"
	"slices"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// expectedAhead is how many processes like one that is watched are expected at a
// time: what a job starts on a node at once.
const expectedAhead = 4

// expectMore has processes of the same program and user watched from their first
// hit on: nobody is fast enough to name a process before it calls something. The
// probes stay on the program's file, and on no library's, when the last process
// has ended: other programs would pay for those. What a process counted that
// turns out not to belong is never asked for.
func (t *tenant) expectMore(uprobes *uprobe.Uprobes, point uint16, images []objfile.Image, attachments []heldAttachment) {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", t.process.PID()))
	uid, userErr := procid.UserID(t.process.PID())
	if err != nil || userErr != nil {
		return // it has ended
	}
	i := slices.IndexFunc(images, func(image objfile.Image) bool { return image.Path == program })
	if i < 0 {
		return // its file cannot be opened any more
	}
	e := uprobe.Expectation{Device: images[i].Device, Inode: images[i].Inode, UID: uid, Point: point}
	if err := uprobes.Expect(e, expectedAhead); err != nil {
		t.placer.log.Debug("processes are not expected", "point", point, "error", err)
		return
	}
	for _, a := range attachments {
		if a.Path() != program {
			continue
		}
		if again, ok := a.hold(); ok {
			t.placer.stand(point, again)
		}
	}
}

// stand keeps a point in a file that no process of the session may run for the
// time being, in place of an earlier one.
func (p *Placer) stand(point uint16, a heldAttachment) {
	p.mu.Lock()
	before, were := p.standing[point]
	if p.closed || p.points[point] == nil {
		before, were = a, true // too late
	} else {
		p.standing[point] = a
	}
	p.mu.Unlock()
	if were {
		before.Close()
		p.giveBack(before.kept)
	}
}

// unstand lets points go that stand, all if none is named.
func (p *Placer) unstand(points ...uint16) {
	p.mu.Lock()
	var gone []heldAttachment
	for point, a := range p.standing {
		if len(points) == 0 || slices.Contains(points, point) {
			gone = append(gone, a)
			delete(p.standing, point)
		}
	}
	p.mu.Unlock()
	for _, a := range gone {
		a.Close()
		p.giveBack(a.kept)
	}
}
