// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// call is a tunlet that does something when it is told the time.
type call func(h *sdk.Host)

func (call) Describe() sdk.Description { return sdk.Description{} }

func (c call) Tick(h *sdk.Host) { c(h) }

// TestFalseAlarmsAreForgotten: pauses are short again after a change that was kept, and after the
// last process of the node.
func TestFalseAlarmsAreForgotten(t *testing.T) {
	for name, happen := range map[string]func(n *node, p *process, h *sdk.Host){
		"kept": func(n *node, p *process, h *sdk.Host) {
			n.found = finding{members: []*process{p}}
			n.propose(h)
			n.ended(h, sdk.ProposalChange{Proposal: n.proposal, State: sdk.Kept})
		},
		"the last process ended": func(n *node, p *process, h *sdk.Host) { n.left(h, p) },
	} {
		t.Run(name, func(t *testing.T) {
			n, p := newNode("node1"), newProcess(1)
			n.processes[1] = p
			falseAlarms := call(func(h *sdk.Host) {
				for range 3 {
					n.nothing(h)
				}
				happen(n, p, h)
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
