// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"log/slog"
	"os"
	"slices"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// decider looks at processes and gives each to whom it belongs. It belongs to one
// goroutine.
type decider struct {
	registered *registered
	gifts      gifts
	hub        *hub
	describer  *describer
	checker    *checker
	own        program
	board      *statusBoard
	handler    Handler
	log        *slog.Logger
}

// executed looks at a process that runs another program.
func (d *decider) executed(e event) {
	if len(d.registered.usable) == 0 || e.PID == os.Getpid() || !e.tagged && d.hub.taken(key{e.PID, e.StartTicks}) {
		return
	}
	names := names(e, d.registered.wants)
	if len(names) == 0 && e.Kind == track.Exec {
		d.board.countMissed() // it has ended, and nothing tells what it was
	}
	if !slices.ContainsFunc(names, d.registered.wants) {
		return
	}
	c, err := d.describer.describe(e, names)
	switch {
	case errors.Is(err, procid.ErrGone):
		d.board.countMissed()
		return
	case err != nil:
		d.log.Warn("process cannot be described", "pid", e.PID, "error", err)
		return
	}
	if !d.decide(c, nil) {
		c.close()
	}
}

// decide gives a process to whom it belongs. sum is its checksum, nil if that
// was not asked for yet. It returns false if nobody else will close c.
func (d *decider) decide(c *candidate, sum *checksum) bool {
	if d.own.is(c.process) || d.elsewhere(c) {
		return false
	}
	g := d.gifts.of(c.key())
	for _, r := range d.registered.usable {
		if g.offered[r.GetId()] || !r.agrees(c) {
			continue
		}
		if c.off {
			g.offered[r.GetId()] = true
			d.gifts[c.key()] = g
			d.mismatch(r, c, track.ErrOff.Error())
			continue
		}
		if r.GetSha256() != "" && sum == nil {
			if sum = d.checker.knownSum(c); sum == nil {
				return d.checker.check(c)
			}
		}
		d.gifts[c.key()] = g
		g.offered[r.GetId()] = true
		if c.privileged && r.GetOwner().GetRole() == attunev1.Role_ROLE_USER {
			d.mismatch(r, c, "it runs with privileges that its user does not have")
			continue
		}
		if r.GetSha256() != "" && !sum.is(r.GetSha256()) {
			d.mismatch(r, c, sum.differs(r.GetSha256()))
			continue
		}
		if d.give(r, c) {
			g.to = r.GetId()
			return true
		}
	}
	return false
}

// elsewhere says whether another Attune has the process, or a session has it
// already, by itself or by whom it descends from.
func (d *decider) elsewhere(c *candidate) bool {
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
		if d.gifts.taken(k) || d.hub.taken(k) {
			return true
		}
		pid = stat.ParentPID
	}
	return false
}

func (d *decider) give(r *registration, c *candidate) (taken bool) {
	taken = d.handler.Found(Found{
		Registration: r.Registration, Process: c.process, Held: c.held, Job: c.process.GetJob(), Batch: c.batch,
	})
	if !taken {
		return false
	}
	d.board.countFound()
	return true
}

func (d *decider) mismatch(r *registration, c *candidate, reason string) {
	d.handler.Mismatch(&attunev1.Mismatch{
		Registration: r.GetId(), Pid: c.process.GetIdentity().GetPid(), Uid: c.process.GetUid(),
		Executable: c.process.GetExecutable(), Reason: reason,
	})
}

// checked goes on with a process whose checksum is there.
func (d *decider) checked(result checksum) {
	c := result.of
	if !d.decide(c, &result) {
		c.close()
	}
}
