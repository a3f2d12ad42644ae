// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"slices"
	"testing"
)

// A thread that the kernel has left out of a listing has not ended: what it took stays its
// own, and is counted once when it is listed again.
func TestThreadLeftOutOfAListing(t *testing.T) {
	proc := newFakeProc(t)
	proc.set(map[int]fakeThread{fakePID: {"S", 1000, 10, 5, 6, "3", 0}, 101: {"R", 500, 50, 2, 3, "3", 0}})
	s := New(Options{root: proc.root, maxFiles: -1})
	defer s.Close()
	mustSample(t, s, fakePID)
	p := s.processes[fakePID]
	p.tids = []int{fakePID}
	p.keepListed(s)
	if !slices.Equal(p.tids, []int{fakePID, 101}) || len(p.threads) != 2 || p.ended.run != 0 {
		t.Errorf("threads %v, ended ones ran for %d", p.tids, p.ended.run)
	}
}
