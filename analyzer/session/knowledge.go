// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/report"
)

// Trial is a proposal that was decided about, and whose application it was.
type Trial struct {
	core.ProposalView
	// Application is the SHA-256 of the executable, hex, and Executable its path.
	Application, Executable string
}

// Trials returns the proposals so far whose outcome says something about the
// application: kept, found useless, or given as advice. Those whose executable
// could not be read are left out.
func (s *Session) Trials(ctx context.Context) ([]Trial, error) {
	return ask(ctx, s, func() (out []Trial) {
		for _, v := range s.core.Proposals() {
			telling := v.State == core.StateKept && v.Judgement != nil || v.State == core.StateAdvised || v.Useless
			if !telling || v.Canary || len(v.Changes) == 0 {
				continue
			}
			p := s.processes[v.Changes[0].Process]
			if p == nil || p.info.GetExecutableSha256() == "" {
				continue
			}
			out = append(out, Trial{ProposalView: v, Application: p.info.GetExecutableSha256(), Executable: p.info.GetExecutable()})
		}
		return out
	})
}

// recall asks, once for each executable, what earlier runs have learnt about it.
func (s *Session) recall(p *process) {
	sum := p.info.GetExecutableSha256()
	if s.cfg.Known == nil || sum == "" || s.recalled[sum] {
		return
	}
	s.recalled[sum] = true
	s.workers.Go(func() {
		known := s.cfg.Known(sum)
		if len(known) > 0 {
			s.post(func() { s.remember(known) })
		}
	})
}

// remember starts the tunlets that helped before, and tells the core.
func (s *Session) remember(known []core.Known) {
	s.step(core.Knowledge{Known: known})
	for _, k := range known {
		if !k.Helped() || s.useful[k.Tunlet] {
			continue
		}
		s.useful[k.Tunlet] = true
		if wake := s.sleepers.wake[k.Tunlet]; wake != nil {
			s.entry(report.Entry{Kind: "tunlet", Tunlet: k.Tunlet, Text: "woken: it helped this program before"})
			delete(s.sleepers.wake, k.Tunlet)
			s.sleepers.waking[k.Tunlet] = nil
			s.sleepers.watch.Remove(k.Tunlet)
			wake()
		}
	}
}
