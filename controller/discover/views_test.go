// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"testing"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
)

// TestViewsShareByUser: the views of one user have one share of what the kernel follows, and
// those of others have others, also after some have ended.
func TestViewsShareByUser(t *testing.T) {
	h := newHub()
	ids, users := make(map[uint32]bool), make(map[uint32]uint32)
	for i := range 4 * procevent.Shares {
		uid := uint32(i % 7)
		v := h.newView(uid)
		if ids[v.id] || v.id == 0 {
			t.Fatalf("view %d has id %d", i, v.id)
		}
		ids[v.id] = true
		share := v.id % procevent.Shares
		if of, is := users[share]; is && of != uid {
			t.Fatalf("users %d and %d have one share", of, uid)
		}
		users[share] = uid
		if i%3 == 0 && i > 7 {
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(users) != 7 {
		t.Errorf("7 users have %d shares", len(users))
	}
	for uid := range uint32(2 * procevent.Shares) { // more than there are
		h.newView(uid)
	}
}
