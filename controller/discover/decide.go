// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"os"
	"slices"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// executed looks at a process that runs another program.
func (s *state) executed(e event) {
	if len(s.registrations) == 0 || e.PID == os.Getpid() || !e.tagged && s.hub.taken(key{e.PID, e.StartTicks}) {
		return
	}
	names := names(e, s.wanted)
	if len(names) == 0 && e.Kind == track.Exec {
		s.status.miss() // it has ended, and nothing tells what it was
	}
	if !slices.ContainsFunc(names, s.wanted) {
		return
	}
	c, err := s.describe(e, names)
	switch {
	case errors.Is(err, procid.ErrGone):
		s.status.miss()
		return
	case err != nil:
		s.log.Warn("process cannot be described", "pid", e.PID, "error", err)
		return
	}
	if !s.decide(c, nil) {
		c.close()
	}
}

// wanted says whether somebody who goes under this name may be meant.
func (s *state) wanted(name string) bool {
	return slices.ContainsFunc(s.registrations, func(r *registration) bool { return r.fits(name, r.uid) })
}

// decide gives a process to whom it belongs. sum is its checksum, nil if that
// was not asked for yet. It returns false if nobody else will close c.
func (s *state) decide(c *candidate, sum *checksum) bool {
	if s.own.is(c.process) || s.elsewhere(c) {
		return false
	}
	g := s.given[c.key()]
	if g == nil {
		g = &gift{offered: make(map[string]bool)}
	}
	for _, r := range s.registrations {
		if g.offered[r.GetId()] || !r.agrees(c) {
			continue
		}
		if c.off {
			g.offered[r.GetId()] = true
			s.given[c.key()] = g
			s.mismatch(r, c, track.ErrOff.Error())
			continue
		}
		if r.GetSha256() != "" && sum == nil {
			if sum = s.knownSum(c); sum == nil {
				return s.check(c)
			}
		}
		s.given[c.key()] = g
		g.offered[r.GetId()] = true
		if c.privileged && r.GetOwner().GetRole() == attunev1.Role_ROLE_USER {
			s.mismatch(r, c, "it runs with privileges that its user does not have")
			continue
		}
		if r.GetSha256() != "" && !sum.is(r.GetSha256()) {
			s.mismatch(r, c, sum.differs(r.GetSha256()))
			continue
		}
		if s.give(r, c) {
			g.to = r.GetId()
			return true
		}
	}
	return false
}

// elsewhere says whether another Attune has the process, or a session has it
// already, by itself or by whom it descends from.
func (s *state) elsewhere(c *candidate) bool {
	if c.attuneJob != "" {
		return true
	}
	pid := int(c.process.GetIdentity().GetPid())
	for range maxGenerations {
		stat, err := procid.ReadStat(pid)
		if err != nil || pid <= 1 {
			return false
		}
		k := key{pid, stat.StartTicks}
		if g := s.given[k]; g != nil && g.taken() || s.hub.taken(k) {
			return true
		}
		pid = stat.ParentPID
	}
	return false
}

func (s *state) give(r *registration, c *candidate) (taken bool) {
	taken = s.handler.Found(Found{
		Registration: r.Registration, Process: c.process, Held: c.held, Job: c.process.GetJob(), Batch: c.batch,
	})
	if !taken {
		return false
	}
	s.status.mu.Lock()
	s.status.found++
	s.status.mu.Unlock()
	return true
}

func (s *state) mismatch(r *registration, c *candidate, reason string) {
	s.handler.Mismatch(&attunev1.Mismatch{
		Registration: r.GetId(), Pid: c.process.GetIdentity().GetPid(), Uid: c.process.GetUid(),
		Executable: c.process.GetExecutable(), Reason: reason,
	})
}
