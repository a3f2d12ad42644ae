// SPDX-License-Identifier: Apache-2.0

package perprocess

import (
	"iter"
	"slices"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// maxWatches bounds the processes that are followed at one time, and with them the memory.
const maxWatches = 1024

// Watches are what a tunlet keeps of each process that it follows, 1024 at a time. The zero
// Watches are empty and ready. Not safe for use by several goroutines.
type Watches[W any] struct {
	byProcess map[sdk.Handle]W
	order     []sdk.Handle // sorted
}

// Follow begins to follow a process, with what begin makes for it. It returns false, and makes
// nothing, of one that is followed already or is beyond the bound, see [sdk.Host.PassOver].
func (w *Watches[W]) Follow(h *sdk.Host, p sdk.Handle, begin func() W) (watch W, begun bool) {
	if _, followed := w.byProcess[p]; followed {
		return watch, false
	}
	if len(w.byProcess) >= maxWatches {
		h.PassOver(p, maxWatches)
		return watch, false
	}
	if w.byProcess == nil {
		w.byProcess = map[sdk.Handle]W{}
	}
	watch = begin()
	w.byProcess[p] = watch
	at, _ := slices.BinarySearch(w.order, p)
	w.order = slices.Insert(w.order, at, p)
	return watch, true
}

// Of is what is kept of a process; zero of one that is not followed.
func (w *Watches[W]) Of(p sdk.Handle) W { return w.byProcess[p] }

// Forget ends following a process.
func (w *Watches[W]) Forget(p sdk.Handle) {
	if at, followed := slices.BinarySearch(w.order, p); followed {
		w.order = slices.Delete(w.order, at, at+1)
		delete(w.byProcess, p)
	}
}

// All is what is kept of all processes, in the order of their handles: told the same, a tunlet
// has to decide the same. Nothing may be followed or forgotten meanwhile.
func (w *Watches[W]) All() iter.Seq[W] {
	return func(yield func(W) bool) {
		for _, p := range w.order {
			if !yield(w.byProcess[p]) {
				return
			}
		}
	}
}
