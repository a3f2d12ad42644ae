// SPDX-License-Identifier: Apache-2.0

package shm

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
