// SPDX-License-Identifier: Apache-2.0

package openmp

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// plain is a team that rests as it is.
type plain struct{ Team }

func (*plain) Rest(*sdk.Host) {}

// call is a tunlet that does something when it is told the time.
type call func(h *sdk.Host)

func (call) Describe() sdk.Description { return sdk.Description{} }

func (c call) Tick(h *sdk.Host) { c(h) }

// TestFalseAlarmsAreForgotten: pauses are short again after a change that was kept, and after the
// last process of the node.
func TestFalseAlarmsAreForgotten(t *testing.T) {
	for name, happen := range map[string]func(n *Teams[*plain], h *sdk.Host){
		"kept": func(n *Teams[*plain], h *sdk.Host) {
			n.Propose(h, sdk.Proposal{}, func(*plain) sdk.Change { return sdk.Change{} })
			n.Ended(h, sdk.ProposalChange{Proposal: n.proposal, State: sdk.Kept})
		},
		"the last process ended": func(n *Teams[*plain], h *sdk.Host) { n.Leave(h, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			n := NewTeams[*plain]("t", "node1")
			n.Join(&plain{NewTeam(1, Runtime{})})
			falseAlarms := call(func(h *sdk.Host) {
				for range 3 {
					n.FalseAlarm(h)
				}
				happen(n, h)
			})
			if _, err := sdk.NewServer(func() sdk.Tunlet { return falseAlarms }, sdk.ServerOptions{}).Tick(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if pause := n.backoff.Next(); pause != 2*time.Second {
				t.Errorf("the next pause is %v", pause)
			}
		})
	}
}
