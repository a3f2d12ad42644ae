// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/change"
	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/controller/member"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestConnectionThatBreaksAtOnce: an Analyzer that could not even be told who
// lives does not keep measure points in place.
func TestConnectionThatBreaksAtOnce(t *testing.T) {
	c := &desk{parts: &parts{log: slog.New(slog.DiscardHandler), members: member.NewSet()}}
	c.outbox = link.NewOutbox(link.OutboxOptions{Silent: true, Living: c.members.List, Heard: func(*member.Member) {}})
	c.members.Add(member.New(&attunev1.Process{Handle: 1}, member.Options{}))
	now := time.Now()
	c.wanted = change.NewWanted(change.WantedOptions{Members: c.members})
	c.wanted.Lost(now.Add(-time.Minute))
	c.wanted.Lost(now) // for another reason
	broken := func(*attunev1.PublishRequest) error { return errors.New("broken") }
	c.opened(broken, func() { t.Error("opened") })
	if !c.wanted.GiveUp(now, time.Second) {
		t.Error("the connection counts as one")
	}
	opened := false
	c.opened(func(*attunev1.PublishRequest) error { return nil }, func() { opened = true })
	c.wanted.Want(&attunev1.Want{})
	if !opened || c.wanted.GiveUp(now, time.Second) {
		t.Errorf("opened %t, and abandoned all the same", opened)
	}
}
