// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestIdleSession: a controller that comes as a session is about to end for want of any
// keeps it, or is told to come to the next one: none is in a session that ends.
func TestIdleSession(t *testing.T) {
	now := time.Unix(0, 0)
	h := &hosted{record: &attunev1.SessionRecord{}, linger: time.Minute, now: func() time.Time { return now }}
	who, since := authn.OfUser(4711), now
	now = since.Add(59 * time.Second)
	if err := h.admit(who, nil); err != nil {
		t.Fatal(err)
	}
	if h.endsIdle(since, since.Add(time.Minute)) {
		t.Error("ends as a controller has come")
	}
	if !h.endsIdle(since, now.Add(time.Minute)) {
		t.Error("waits for one for ever")
	}
	if err := h.admit(who, nil); !errors.Is(err, errClosing) {
		t.Errorf("let in: %v", err)
	}
}
