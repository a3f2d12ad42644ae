// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"io"
	"sync"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/controller/stack"
	"github.com/attune-hpc/attune/internal/objfile"
)

// watchKey is what the kernel counts by. After an exec it is the same as
// before, for another image: whoever was there first must neither take what the
// next one counts nor end its watch, however late it hears of its own end.
type watchKey struct {
	pid   int
	point uint16
}

// watchOwners says for which process, of those that had a pid after each other, the
// kernel counts. Its methods may be called from any goroutine, with the lock of a
// process held as well.
type watchOwners struct {
	mu sync.Mutex // guards of; held while the kernel is told
	of map[watchKey]*host
}

var errReplaced = errors.New("another program runs in the process by now")

// begin has the kernel count for a process, from 0 if it counted for an earlier
// image.
func (w *watchOwners) begin(uprobes *uprobe.Uprobes, h *host, point uint16, captured captures) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := watchKey{h.process.PID(), point}
	if !h.process.Alive() {
		return errReplaced // or ended: nobody would take the counts
	}
	if earlier := w.of[key]; earlier != nil && earlier != h {
		if earlier.process.Handle() > h.process.Handle() {
			return errReplaced
		}
		if err := uprobes.UnwatchProcess(key.pid, point); err != nil {
			return err
		}
	}
	watch := uprobe.Watch{PID: key.pid, StartTicks: h.process.Identity().StartTicks, Point: point, Globals: captured.globals}
	if captured.program.KeyStack() {
		space, err := stack.NewSpace(h.process.Images)
		if err != nil {
			return err
		}
		watch.Space = space
	}
	if err := uprobes.Watch(watch); err != nil {
		return err
	}
	w.of[key] = h
	return nil
}

// end ends what the kernel counts for a process; it is no error if that was nothing.
func (w *watchOwners) end(uprobes *uprobe.Uprobes, h *host, point uint16) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := watchKey{h.process.PID(), point}
	if w.of[key] != h {
		return nil
	}
	delete(w.of, key)
	return uprobes.UnwatchProcess(key.pid, point)
}

// has says whether what the kernel counts belongs to a process.
func (w *watchOwners) has(h *host, point uint16) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[watchKey{h.process.PID(), point}] == h
}

// kernel is what the uprobes of all processes have in common. A uprobe belongs to the
// file: it stands in every process that maps it. Its methods may be called from any
// goroutine, with the lock of a process held as well, but for returnAll.
type kernel struct {
	*common
	work    *work
	points  *points
	watches watchOwners
	// recall has patches serve again what gave way to uprobes.
	recall func()

	mu       sync.Mutex                // guards what follows; comes before that of points
	standing map[uint16]heldAttachment // see stand
	leaving  []*sites.Kept             // see giveBack

	yielding  sync.Once  // begins yieldFiles
	returning sync.Mutex // held while functions are taken back from the kernel
}

// byKernel says how the kernel comes to serve a point.
type byKernel struct {
	// why nothing cheaper serves.
	why string
	// yielding says that patches would serve, were it not for the uprobe of
	// another point.
	yielding bool
	// busy says that patches would serve, were the process not busy.
	busy bool
	// preferred says that DMLib would serve for more, by what it captures.
	preferred bool
	// watches begin before anything is in place, where patches give way.
	watches []uprobe.Watch
}

// patchedError means that functions which are to get a uprobe may be patched in
// some process: the patches give way first.
type patchedError struct {
	numbers []int
	by      byKernel // how the point comes to the kernel then; without a reason: that is found again
}

func (patchedError) Error() string { return "entry patches of other points give way first" }

// leaveToKernel gives functions to the kernel that are about to get a uprobe. Its
// breakpoint would stand in the place of a patch's jump, in every process, and the
// patch would count nothing any more without anybody noticing. needed says that no
// patch would serve. The error is a patchedError where that would happen,
// [sites.ErrActed] where a tuning action needs a patch to stay, [sites.ErrJump]
// where a patch cannot give way.
func (k *kernel) leaveToKernel(image objfile.Image, file io.ReaderAt, symbols []uprobe.Symbol, needed bool) (*sites.Kept, error) {
	var keys, places []sites.Key
	for _, s := range symbols {
		key := sites.Key{Device: image.Device, Inode: image.Inode, Offset: s.Offset}
		keys = append(keys, key)
		key.Offset = uprobe.PlaceOf(file, s)
		places = append(places, key)
	}
	kept, patched, err := k.options.Functions.Leave(keys, places, needed)
	if err == nil && len(patched) > 0 {
		err = patchedError{numbers: patched}
	}
	return kept, err
}

// giveBack lets functions be patched again whose uprobes are being taken out, and
// has patches serve again what gave way to uprobes that nobody needs any more. It
// returns at once.
func (k *kernel) giveBack(kept *sites.Kept) {
	k.mu.Lock()
	k.leaving = append(k.leaving, kept)
	k.mu.Unlock()
	k.work.begin(func() {
		k.returnAll()
		k.recall()
	})
}

// returnAll waits until the kernel has taken out all breakpoints of what leaves:
// before, a patch would find one in its place.
func (k *kernel) returnAll() {
	k.returning.Lock() // a caller finds all returned that left before its call
	defer k.returning.Unlock()
	k.mu.Lock()
	leaving := k.leaving
	k.leaving = nil
	k.mu.Unlock()
	if len(leaving) == 0 {
		return
	}
	if uprobes, err := k.options.Uprobes(); err == nil && uprobes.Settle(k.work.ctx) != nil {
		return // the Placer is closed
	}
	for _, kept := range leaving {
		kept.Return()
	}
}

// release gives up what the kernel watches in a file.
func (k *kernel) release(a heldAttachment) {
	a.Close()
	k.giveBack(a.kept)
}
