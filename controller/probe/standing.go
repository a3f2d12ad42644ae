// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"os"
	"os/signal"
	"slices"

	"golang.org/x/sys/unix"
)

// stand keeps a point in a file that no process of the session may run for the
// time being, in place of an earlier one. The file is leased: as long as a process
// runs it nobody can write it, and afterwards whoever does would have the probes in
// the middle of instructions.
func (k *kernel) stand(point uint16, a heldAttachment) {
	k.yielding.Do(func() { k.work.begin(k.yieldFiles) })
	if err := a.Lease(); err != nil {
		k.log.Debug("the point leaves its program with the last process; one that starts later is watched from its admission on",
			"point", point, "error", err)
		k.release(a)
		return
	}
	k.mu.Lock()
	before, were := k.standing[point]
	if spec, _ := k.points.at(point); spec == nil || k.work.ctx.Err() != nil {
		before, were = a, true // too late
	} else {
		k.standing[point] = a
	}
	k.mu.Unlock()
	if were {
		k.release(before)
	}
	k.unstandClaimed() // yieldFiles may have looked between the lease and now
}

// unstand lets points go that stand, all if none is named.
func (k *kernel) unstand(points ...uint16) {
	k.unstandIf(func(point uint16, _ heldAttachment) bool { return len(points) == 0 || slices.Contains(points, point) })
}

func (k *kernel) unstandIf(goes func(uint16, heldAttachment) bool) {
	k.mu.Lock()
	var gone []heldAttachment
	for point, a := range k.standing {
		if goes(point, a) {
			gone = append(gone, a)
			delete(k.standing, point)
		}
	}
	k.mu.Unlock()
	for _, a := range gone {
		k.release(a)
	}
}

// unstandClaimed lets points go whose file somebody waits to write.
func (k *kernel) unstandClaimed() {
	k.unstandIf(func(_ uint16, a heldAttachment) bool { return a.Claimed() })
}

// yieldFiles lets points go whose file somebody waits to write, until the Placer is
// closed.
func (k *kernel) yieldFiles() {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, unix.SIGIO)
	defer signal.Stop(broken)
	for {
		// Before the first signal as well: a lease may have been taken earlier.
		k.unstandClaimed()
		select {
		case <-broken:
		case <-k.work.ctx.Done():
			return
		}
	}
}
