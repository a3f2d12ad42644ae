// SPDX-License-Identifier: Apache-2.0

package shm

import "github.com/attune-hpc/attune/dmlib/abi"

// Hook describes one of DMLib's own hooks.
type Hook struct {
	// Index is its local point index.
	Index int
	// Name is the hooked function.
	Name string
	// Family is the safe-point family it belongs to.
	Family Family
}

// Hooks returns DMLib's own hooks in the order of their indices.
func Hooks() []Hook {
	var hooks []Hook
	for _, h := range abi.Hooks() {
		hooks = append(hooks, Hook{Index: h.Index, Name: h.Name, Family: Family(h.Family)})
	}
	return hooks
}

// HookByName finds a hook by its function's name.
func HookByName(name string) (Hook, bool) {
	for _, h := range Hooks() {
		if h.Name == name {
			return h, true
		}
	}
	return Hook{}, false
}

// Led says that a hook stands before nothing until GOT slots are led to it.
func (h Hook) Led() bool { return h.Family == AtLock }

// localPoints calls f with the local point index of every hook or stub at
// which a command of one of these families may run.
func localPoints(families Family, f func(index int)) {
	for _, h := range Hooks() {
		if h.Family&families != 0 {
			f(h.Index)
		}
	}
	if families&(AtStub|AtPatch) != 0 {
		for i := HookCount; i < PointCount; i++ {
			f(i)
		}
	}
}
