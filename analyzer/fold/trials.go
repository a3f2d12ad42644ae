// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Trial is a proposal that was decided about, and whose application it was.
type Trial struct {
	*attunev1.RecordedProposal
	// Application is the SHA-256 of the executable, hex, and Executable its path.
	Application, Executable string
}

// Kept says that its gain was proven, rather than that it was only given as advice
// or found useless.
func (t Trial) Kept() bool { return t.GetState() == stateKept }

// Trials returns the proposals so far whose outcome says something about the
// application: kept, found useless, or given as advice. Those whose executable
// could not be read are left out.
func (a *Account) Trials() (out []Trial) {
	for _, p := range a.proposals.inOrder() {
		telling := p.GetState() == stateKept && p.GetJudgement() != nil || p.GetState() == stateAdvised || p.GetUseless()
		if !telling || p.GetCanary() || len(p.GetChanges()) == 0 {
			continue
		}
		of := a.processes.of(p.GetChanges()[0].GetSpec().GetProcess())
		if of.info.SHA256 != "" {
			out = append(out, Trial{proto.CloneOf(p.RecordedProposal), of.info.SHA256, of.info.Exe})
		}
	}
	return out
}
