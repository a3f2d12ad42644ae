// SPDX-License-Identifier: Apache-2.0

package ring

// Reclaim closes the slots of threads that died without closing theirs
// (pthread_exit by cancellation at a bad moment, a raw exit system call), so
// that the next Drain empties and frees them. It returns how many. alive is
// asked for thread ids as the process sees them; in a container the caller
// translates. It costs one call of alive per slot in use: call it when Drain
// says FewSlotsFree, or when a thread is known to have ended badly. After Close
// it does nothing.
func (m *Memory) Reclaim(alive func(tid int) bool) int {
	m.life.RLock()
	defer m.life.RUnlock()
	m.drain.Lock()
	defer m.drain.Unlock()
	if m.data == nil {
		return 0
	}
	closed := 0
	for i := range m.usedSlots() {
		if m.reclaimSlot(i, alive) {
			closed++
		}
	}
	return closed
}

func (m *Memory) reclaimSlot(index int, alive func(int) bool) bool {
	at := m.slotAt(index)
	if m.slots[index].corrupt || load32(m.data, at+slotState) != slotUsed {
		return false
	}
	tid := int(int32(load32(m.data, at+slotTID)))
	if tid <= 0 || alive(tid) { // 0: claimed a moment ago, id not written yet
		return false
	}
	// If the thread closes it itself in between, the swap fails, as it should.
	return cas32(m.data, at+slotState, slotUsed, slotClosed)
}
