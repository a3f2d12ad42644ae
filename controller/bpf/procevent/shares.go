// SPDX-License-Identifier: Apache-2.0

package procevent

import (
	"errors"
	"sync/atomic"

	"github.com/attune-hpc/attune/controller/bpf"
)

// Shares is how many users of a node-wide ProcessEvents have shares of the members: slots
// with the same remainder have one. See controller/bpf/include/member_shares.h.
const Shares = 1024

// ErrShare is returned where whoever has a slot has more than a share of the members already.
var ErrShare = errors.New("a share of all processes that can be followed is in use")

// shares are the kernel's counts of members, as far as members have shares. The methods may
// be called from any goroutine until it is closed.
type shares struct {
	room   int64 // 0: nobody has shares
	counts bpf.SharedArray[processEventsMemberShare]
}

// enter counts a member that user space adds; false: its slot has no room.
func (s *shares) enter(slot uint32) bool {
	if s.room == 0 {
		return true
	}
	own, all := s.members(slot%Shares), s.members(Shares)
	if atomic.LoadInt64(own) >= s.room/8 && atomic.LoadInt64(all) >= s.room/2 {
		return false
	}
	s.count(slot, 1)
	return true
}

// leave is the end of a membership that the kernel does not count itself.
func (s *shares) leave(slot uint32) {
	if s.room != 0 {
		s.count(slot, -1)
	}
}

func (s *shares) count(slot uint32, more int64) {
	atomic.AddInt64(s.members(slot%Shares), more)
	atomic.AddInt64(s.members(Shares), more)
}

func (s *shares) members(index uint32) *int64 { return &s.counts.Elements[index].Members }

// refused is how many children of a slot's members were not followed.
func (s *shares) refused(slot uint32) uint64 {
	if s.room == 0 {
		return 0
	}
	return atomic.LoadUint64(&s.counts.Elements[slot%Shares].Refused)
}
