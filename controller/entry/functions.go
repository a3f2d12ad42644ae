// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"errors"
	"fmt"
	"sync"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/ring"
)

// Key names a function on a node: the file that holds it and where in it.
type Key struct{ Device, Inode, Offset uint64 }

// KeyOf returns the key of a function.
func KeyOf(f Function) Key {
	return Key{f.Image.Device, f.Image.Inode, f.Symbol.FileOffset}
}

// Functions is what the Sites of one controller know of functions together: a
// number for each that is measured, the same in every process, since a forked
// child inherits its parent's patches and must not find another function's
// number in one; and which of them belong to the kernel's probes. Numbers are
// given from the top, for good; stubs are counted from below in each process.
// The zero value is ready for use, and safe for concurrent use.
type Functions struct {
	mu    sync.Mutex // guards what follows
	stubs int        // the most that any process uses
	given map[Key]int
	// kernels are functions that uprobes watch: never patched from then on.
	kernels map[Key]bool
	// acted counts the actions on a function, in all processes.
	acted map[Key]int
}

var (
	// errKernels is why such a function is not patched.
	errKernels = fmt.Errorf("%w: a uprobe watches it, in whatever process, and would undo the patch", patch.ErrUnpatchable)
	// ErrActed means that a tuning action has the entry of a function.
	ErrActed = errors.New("a tuning action changes the function in some process: a uprobe would undo it")
)

// Number returns the number of a function for measuring it.
func (n *Functions) Number(key Key) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kernels[key] {
		return 0, errKernels
	}
	if number, ok := n.given[key]; ok {
		return number, nil
	}
	number := ring.StubCount - 1 - len(n.given)
	if number < n.stubs {
		return 0, fmt.Errorf("all %d numbers of stubs and entry patches are in use", ring.StubCount)
	}
	if n.given == nil {
		n.given = make(map[Key]int)
	}
	n.given[key] = number
	return number, nil
}

// Leave gives functions to the kernel, and returns the numbers of those that
// may be patched in some process. [ErrActed] where that is not possible.
func (n *Functions) Leave(keys []Key) (patched []int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, key := range keys {
		if n.acted[key] > 0 {
			return nil, ErrActed
		}
	}
	if n.kernels == nil {
		n.kernels = make(map[Key]bool)
	}
	for _, key := range keys {
		if number, ok := n.given[key]; ok && !n.kernels[key] {
			patched = append(patched, number)
		}
		n.kernels[key] = true
	}
	return patched, nil
}

// Stub says whether a process may use the stub; it is below all numbers then.
func (n *Functions) Stub(stub int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if stub >= ring.StubCount-len(n.given) {
		return false
	}
	n.stubs = max(n.stubs, stub+1)
	return true
}

// act notes an action on a function.
func (n *Functions) act(key Key) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kernels[key] {
		return errKernels
	}
	if n.acted == nil {
		n.acted = make(map[Key]int)
	}
	n.acted[key]++
	return nil
}

// rest notes that an action is over.
func (n *Functions) rest(key Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.acted[key]--; n.acted[key] <= 0 {
		delete(n.acted, key)
	}
}

// kernel says whether a uprobe watches a function.
func (n *Functions) kernel(key Key) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kernels[key]
}
