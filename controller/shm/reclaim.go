// SPDX-License-Identifier: Apache-2.0

package shm

import "github.com/attune-hpc/attune/dmlib/abi"

// Reclaim closes the slots of threads that died without closing theirs
// (pthread_exit by cancellation at a bad moment, a raw exit system call), so
// that the next Drain empties and frees them. It returns how many. ended is asked
// once, with the ids of all threads that have a slot, as the process sees them, and
// returns those that have ended; in a container it translates. It must look at the
// threads after it was called: a list from before lacks threads that were born and
// took a slot since. Call Reclaim when Drain says FewSlotsFree, or when a thread is
// known to have ended badly. After Close it does nothing.
func (rs *Rings) Reclaim(ended func(tids []int) []int) int {
	rs.life.RLock()
	defer rs.life.RUnlock()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.data == nil {
		return 0
	}
	tids, slots := rs.slotOwners()
	closed := 0
	for _, tid := range ended(tids) {
		for _, index := range slots[tid] {
			if rs.closeSlot(index, tid) {
				closed++
			}
		}
	}
	return closed
}

// slotOwners returns the ids of the threads that have slots, each once, and their
// slots. A thread that claimed its slot a moment ago has not written its id yet. The
// caller holds life and mu.
func (rs *Rings) slotOwners() (tids []int, slots map[int][]int) {
	slots = make(map[int][]int)
	l := rs.newLook()
	for i := range rs.usedSlots() {
		at := rs.slotAt(i)
		if rs.slots[i].corrupt || !rs.slotPresent(&l, i) || load32(rs.data, at+abi.SlotStateAt) != abi.SlotUsed {
			continue
		}
		tid := int(int32(load32(rs.data, at+abi.SlotTIDAt)))
		if tid <= 0 {
			continue
		}
		if slots[tid] == nil {
			tids = append(tids, tid)
		}
		slots[tid] = append(slots[tid], i)
	}
	return tids, slots
}

// closeSlot closes a slot that still is the thread's: only Drain frees slots, so no
// other thread has it. If the thread closes the slot itself in between, the swap
// fails, as it should.
func (rs *Rings) closeSlot(index, tid int) bool {
	at := rs.slotAt(index)
	return int(int32(load32(rs.data, at+abi.SlotTIDAt))) == tid && cas32(rs.data, at+abi.SlotStateAt, abi.SlotUsed, abi.SlotClosed)
}
