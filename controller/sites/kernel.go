// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"maps"
	"slices"
)

// Kept keeps functions for the kernel, for as long as its uprobes watch them.
type Kept struct {
	functions    *Functions
	keys, places []Key
	needed       bool
}

// Leave gives functions to the kernel whose uprobes are to stand at some places,
// unless some of them are patched in some process: then it returns their numbers
// and gives none. needed says that patches would not do. [ErrActed] where an
// action needs a patch to stay, [ErrJump] where a place is within the jump of a
// patch.
func (n *Functions) Leave(keys, places []Key, needed bool) (kept *Kept, patched []int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	wanted := make(map[Key]bool, len(keys))
	for _, key := range keys {
		if n.acted[key] > 0 {
			return nil, nil, ErrActed
		}
		wanted[key] = n.measured[key] > 0 && n.kernels[key].all == 0
	}
	if slices.ContainsFunc(places, func(place Key) bool { return n.jumps[place] > 0 }) {
		return nil, nil, ErrJump
	}
	for of, number := range n.given {
		if wanted[of.Key] {
			patched = append(patched, number)
		}
	}
	if len(patched) > 0 {
		return nil, patched, nil
	}
	return n.keep(keys, places, needed), nil, nil
}

// Take gives the functions with these numbers to the kernel, and the caller sees
// to it in every process that has patched them. [ErrActed] or [ErrJump], and none
// is given, where a patch has to stay.
func (n *Functions) Take(numbers []int) (*Kept, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	keys := make(map[Key]bool)
	for of, number := range n.given {
		if !slices.Contains(numbers, number) {
			continue
		}
		if n.acted[of.Key] > 0 {
			return nil, ErrActed
		}
		if n.whole[of.Key] > 0 {
			return nil, ErrJump
		}
		keys[of.Key] = true
	}
	return n.keep(slices.Collect(maps.Keys(keys)), nil, true), nil
}

// keep keeps functions for the kernel. The caller holds mu.
func (n *Functions) keep(keys, places []Key, needed bool) *Kept {
	if n.kernels == nil {
		n.kernels, n.probed = make(map[Key]watches), make(map[Key]int)
	}
	k := &Kept{functions: n, keys: keys, places: places, needed: needed}
	k.count(1)
	return k
}

// count notes so many uprobes more. The caller holds the lock of the functions.
func (k *Kept) count(more int) {
	n := k.functions
	for _, key := range k.keys {
		w := n.kernels[key]
		w.all += more
		if k.needed {
			w.needed += more
		}
		if n.kernels[key] = w; w.all == 0 {
			delete(n.kernels, key)
		}
	}
	for _, place := range k.places {
		if n.probed[place] += more; n.probed[place] == 0 {
			delete(n.probed, place)
		}
	}
}

// Again keeps the same functions for as long as another uprobe watches them.
func (k *Kept) Again() *Kept {
	k.functions.mu.Lock()
	defer k.functions.mu.Unlock()
	return k.functions.keep(k.keys, k.places, k.needed)
}

// Return lets the functions be patched again, unless other uprobes watch them.
// The kernel must have taken its breakpoints out. It is called once.
func (k *Kept) Return() {
	k.functions.mu.Lock()
	defer k.functions.mu.Unlock()
	k.count(-1)
}

// Idle says that nobody needs the kernel to watch any of the functions: their
// points could be served by patches.
func (k *Kept) Idle() bool {
	k.functions.mu.Lock()
	defer k.functions.mu.Unlock()
	return !slices.ContainsFunc(k.keys, func(key Key) bool { return k.functions.kernels[key].needed > 0 })
}
