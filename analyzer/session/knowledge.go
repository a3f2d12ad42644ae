// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/attune-hpc/attune/analyzer/core"

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
			s.emitSleeper(k.Tunlet, true, 0, "woken: it helped this program before")
			delete(s.sleepers.wake, k.Tunlet)
			s.sleepers.waking[k.Tunlet] = nil
			s.sleepers.watch.Remove(k.Tunlet)
			wake()
		}
	}
}
