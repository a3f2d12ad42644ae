// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"time"
)

// recallBusy has the points recalled that the kernel serves because the process was busy. It says
// whether there are any.
func (o *occupancy) recallBusy() (some bool) {
	for _, p := range o.placed {
		if p.busy {
			p.yielding, some = true, true
		}
	}
	return some
}

// leave takes a point out that the kernel serves, until it is placed again.
func (o *occupancy) leave(ctx context.Context, index uint16) {
	p := o.placed[index]
	o.recalled[index] = recalled{absence: absence{spec: p.spec, since: time.Now(), late: p.late}}
	o.uprobes.kernel.unstand(index)
	o.takeOut(ctx, index)
}

// letGo notes that the kernel has let go of a point that was recalled.
func (o *occupancy) letGo(index uint16) {
	if r, was := o.recalled[index]; was {
		r.back = true
		o.recalled[index] = r
	}
}

// leaves says whether the kernel has not let go yet of a point that was recalled.
func (o *occupancy) leaves(w wish) bool {
	r, was := o.recalled[w.index]
	return was && r.spec == w.spec && !r.back
}

// settleRecalled ends the absence of a point that is placed again. One that the
// kernel serves after all stays there, unless it still gives way to another one.
func (o *occupancy) settleRecalled(index uint16, p *placement) (was bool) {
	r, was := o.recalled[index]
	if was {
		delete(o.recalled, index)
		p.late, p.preferred, p.yielding = r.now(), false, p.yielding && p.needed()
	}
	return was
}
