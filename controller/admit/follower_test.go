// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"testing"

	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/controller/member"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Of a process that has come to the gate that is told, also where it ends when the news
// of its start have left and it was not taken in yet.
func TestEndAfterTheNews(t *testing.T) {
	var told []*attunev1.PublishRequest
	outbox := link.NewOutbox(link.OutboxOptions{
		Send:  func(m *attunev1.PublishRequest) { told = append(told, m) },
		Heard: func(*member.Member) {},
	})
	f := &follower{ways: ways{&Options{Outbox: outbox}}, arrivals: newArrivals()}
	m := member.New(&attunev1.Process{Handle: 1, Identity: &attunev1.ProcessIdentity{Pid: 7}}, member.Options{})
	outbox.Started(m)
	outbox.Flush()
	f.arrivals.greet(7)
	f.endAtGate(m, m.End(), false)
	if got := told[len(told)-1].GetProcessChanged().GetMechanisms(); len(got) != 1 || got[0].GetName() != member.MechanismDMLib || !got[0].GetAvailable() {
		t.Errorf("told: %v", told)
	}
}
