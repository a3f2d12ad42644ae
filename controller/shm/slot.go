// SPDX-License-Identifier: Apache-2.0

package shm

import "github.com/attune-hpc/attune/dmlib/abi"

// usedSlots is how many slots, from the first on, have ever been claimed. There
// may be hundreds, each on pages of its own, which reading alone would
// allocate; most processes use a few. The caller holds life.
func (m *Memory) usedSlots() int {
	return min(int(load32(m.data, abi.HeaderSlotsUsedAt)), m.geometry.Slots)
}
