// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"sync"

	"github.com/attune-hpc/attune/controller/ring"
)

// functionKey names a function on a node.
type functionKey struct{ device, inode, offset uint64 }

// numbers gives functions their numbers for entry patches, the same in every
// process: a forked child inherits its parent's patches, and must not find
// another function's number in one. They are given from the top, for good;
// stubs are counted from below in each process.
type numbers struct {
	mu    sync.Mutex // guards what follows
	stubs int        // the most that any process uses
	given map[functionKey]int
	// kernels are functions that uprobes watch: never patched from then on.
	kernels map[functionKey]bool
}

// errKernels is why such a function is not patched.
var errKernels = errors.New("a uprobe watches it, in whatever process, and would undo the patch")

// of returns the number of a function.
func (n *numbers) of(key functionKey) (int, error) {
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
		n.given = make(map[functionKey]int)
	}
	n.given[key] = number
	return number, nil
}

// leave gives functions to the kernel, and returns the numbers of those that
// may be patched in some process.
func (n *numbers) leave(keys []functionKey) (patched []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kernels == nil {
		n.kernels = make(map[functionKey]bool)
	}
	for _, key := range keys {
		if number, ok := n.given[key]; ok && !n.kernels[key] {
			patched = append(patched, number)
		}
		n.kernels[key] = true
	}
	return patched
}

// stub says whether a process may use the stub; it is below all numbers then.
func (n *numbers) stub(stub int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if stub >= ring.StubCount-len(n.given) {
		return false
	}
	n.stubs = max(n.stubs, stub+1)
	return true
}
