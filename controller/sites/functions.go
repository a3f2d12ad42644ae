// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/shm"
)

// numbered is a function, measured at some places, with which of its numbers for that
// is meant.
type numbered struct {
	Key

	entry, exits bool
	nth          int
}

// watches counts the uprobes that watch a function, in all processes.
type watches struct {
	all int
	// needed are those of points that no patch would serve.
	needed int
}

// Functions is what the Sites of one controller know of functions together:
// numbers for each that is measured, one for each of its measure points, the
// same in every process, since a forked child inherits its parent's patches and
// must not find another function's number in one, nor at an exit that of a point
// which is at the entry alone; and which of them belong to the kernel's probes.
// Numbers are given from the top, for good; stubs are counted from below in each
// process. The zero value is ready for use, and safe for concurrent use.
type Functions struct {
	mu    sync.Mutex // guards what follows
	stubs int        // the most that any process uses
	given map[numbered]int
	giver string // tells these numbers from another controller's; "": nobody has asked
	// measured counts the numbers under which patches measure a function, in all
	// processes.
	measured map[Key]int
	// kernels are functions that uprobes watch: they are not patched meanwhile.
	kernels map[Key]watches
	// probed counts the uprobes at a place: behind the landing pad, if there is
	// one.
	probed map[Key]int
	// jumps are the bytes of all patches in which a breakpoint would change where
	// a jump leads, or have the kernel go on within one. whole are the functions
	// with whole jumps, which cannot give way to a uprobe while they are called.
	jumps, whole map[Key]int
	// acted counts the actions on a function, in all processes.
	acted map[Key]int
}

var (
	// ErrWatched is why such a function is not patched.
	ErrWatched = fmt.Errorf("%w: a uprobe watches it, in whatever process, and would undo the patch", patch.ErrUnpatchable)
	// errReached is why a place whose jump would have a uprobe in it is not patched.
	errReached = fmt.Errorf("%w: a uprobe is where its jump would be", patch.ErrUnpatchable)
	// ErrJump means that a place lies within the jump of a patch.
	ErrJump = errors.New("a patch has its jump there: a uprobe would change where it leads")
	// ErrActed means that a tuning action has the entry of a function.
	ErrActed = errors.New("a tuning action changes the function in some process: a uprobe would undo it")
)

// number returns one of the numbers of a function for measuring it at some places,
// from the 0th on.
func (n *Functions) number(key Key, at Where, nth int) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kernels[key].all > 0 {
		return 0, ErrWatched
	}
	one := numbered{key, at.Entry, at.Exits, nth}
	if number, ok := n.given[one]; ok {
		return number, nil
	}
	number := shm.StubCount - 1 - len(n.given)
	if number < n.stubs {
		return 0, fmt.Errorf("all %d numbers of stubs and entry patches are in use", shm.StubCount)
	}
	if n.given == nil {
		n.given = make(map[numbered]int)
	}
	n.given[one] = number
	return number, nil
}

// self tells these numbers from those of other controllers.
func (n *Functions) self() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.giver == "" {
		n.giver = rand.Text()
	}
	return n.giver
}

// measures notes that patches are about to measure a function under one more
// number.
func (n *Functions) measures(key Key) error { return n.claim(&n.measured, key) }

// ends notes that some numbers are not measured any more.
func (n *Functions) ends(key Key, numbers int) { n.release(&n.measured, key, numbers) }

// Stub says whether a process may use the stub; it is below all numbers then.
func (n *Functions) Stub(stub int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if stub >= shm.StubCount-len(n.given) {
		return false
	}
	n.stubs = max(n.stubs, stub+1)
	return true
}

// act notes an action on a function.
func (n *Functions) act(key Key) error { return n.claim(&n.acted, key) }

// rest notes that an action is over.
func (n *Functions) rest(key Key) { n.release(&n.acted, key, 1) }

// claim counts one more use of a function by patches, unless a uprobe watches it.
func (n *Functions) claim(counts *map[Key]int, key Key) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kernels[key].all > 0 {
		return ErrWatched
	}
	if *counts == nil {
		*counts = make(map[Key]int)
	}
	(*counts)[key]++
	return nil
}

// release counts some uses less.
func (n *Functions) release(counts *map[Key]int, key Key, uses int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if left := (*counts)[key] - uses; left > 0 {
		(*counts)[key] = left
	} else {
		delete(*counts, key)
	}
}

// reach notes that a patch of a function is about to be in the code, where it
// stays for good as far as uprobes are concerned: a forked child has it longer
// than its parent. giveBack says that it did not come to that.
func (n *Functions) reach(f Function, site patch.Site) (giveBack func(), err error) {
	bytes := reached(f, site)
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.ContainsFunc(bytes, func(at Key) bool { return n.probed[at] > 0 }) {
		return nil, errReached
	}
	if n.jumps == nil {
		n.jumps, n.whole = make(map[Key]int), make(map[Key]int)
	}
	n.count(f, site, bytes, 1)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.count(f, site, bytes, -1)
	}, nil
}

// count notes so many patches more. The caller holds mu.
func (n *Functions) count(f Function, site patch.Site, bytes []Key, more int) {
	for _, at := range bytes {
		n.jumps[at] += more
	}
	if site.Wide() {
		n.whole[KeyOf(f)] += more
	}
}

// reached are the bytes of a patch that must stay as they are: not the first
// one, if that alone makes the jump; a breakpoint may take its place.
func reached(f Function, site patch.Site) (bytes []Key) {
	at := KeyOf(f)
	at.Offset += site.Address - f.address()
	length := patch.JumpBytes
	if site.Wide() {
		length = len(site.Original)
	}
	for i := range uint64(length) {
		if i > 0 || site.Wide() {
			bytes = append(bytes, Key{at.Device, at.Inode, at.Offset + i})
		}
	}
	return bytes
}

// kernel says whether a uprobe watches a function.
func (n *Functions) kernel(key Key) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kernels[key].all > 0
}
