// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/logging"
	"github.com/attune-hpc/attune/internal/passing"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// decider looks at processes and gives each to whom it belongs. It belongs to one
// goroutine.
type decider struct {
	registered *registered
	gifts      gifts
	hub        *hub
	describer  *describer
	examiner   *examiner
	batch      *batchLookup
	checker    *checker
	own        program
	board      *statusBoard
	handler    Handler
	log        *slog.Logger
	// skipped: too much of a user's waited for one more of their processes to be looked at,
	// or this machine had no room for a look.
	skipped bool
}

// executed has a process looked at that runs another program; false if it is not.
// round is that of the look, 0 if nobody waits for it.
func (d *decider) executed(e event, round int) bool {
	if len(d.registered.usable) == 0 || e.PID == os.Getpid() || !e.tagged && d.hub.taken(key{e.PID, e.StartTicks}) {
		return false
	}
	usable := d.registered.usable
	if !d.examiner.put(userOf(e), func(ctx context.Context) examined {
		found := d.describer.examine(ctx, e, usable)
		found.round = round
		return found
	}) {
		d.board.missed.Add(1)
		d.skipped = true
		return false
	}
	return true
}

// examined goes on with a process that was looked at.
func (d *decider) examined(found examined) {
	if found.missed {
		d.board.missed.Add(1)
	}
	if found.failed != nil && !errors.Is(found.failed, readers.ErrRefused) { // that is logged once for all
		d.log.Warn("process is left alone", logging.UserKey, found.uid, "error", found.failed)
		d.skipped = d.skipped || passing.Error(found.failed)
	}
	c := found.candidate
	if c == nil {
		return
	}
	pid, uid := int(c.process.GetIdentity().GetPid()), c.process.GetUid()
	c.privileged, c.batch = privileged(pid, uid), d.batch.started(pid, uid)
	d.settle(c, nil)
}

// decide gives a process to whom it belongs. sum is its checksum, nil if that
// was not asked for yet. It returns false if nobody else will close c.
func (d *decider) decide(c *candidate, sum *checksum) bool {
	if d.own.is(c.process) || d.elsewhere(c) {
		return false
	}
	g := d.gifts.of(c)
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
				return d.check(c)
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
	taken = d.handler.Found(Found{Registration: r.Registration, Process: c.process, Held: c.held})
	if !taken {
		return false
	}
	d.board.found.Add(1)
	return true
}

func (d *decider) mismatch(r *registration, c *candidate, reason string) {
	d.handler.Mismatch(&attunev1.Mismatch{
		Registration: r.GetId(), Pid: c.process.GetIdentity().GetPid(), Uid: c.process.GetUid(),
		Executable: c.process.GetExecutable(), Reason: reason,
	})
}

// check has a process wait for its checksum; false if too many of its user's wait.
func (d *decider) check(c *candidate) bool {
	waits := d.checker.check(c)
	if !waits {
		d.board.missed.Add(1)
		d.skipped = true
	}
	return waits
}

// checked goes on with a process whose checksum is there, and with those that waited for
// the same file. Why there is none may be of that process only.
func (d *decider) checked(result checksum) {
	others, sum := d.checker.checked(result.of), &result
	d.settle(result.of, sum)
	if result.err != nil {
		sum = nil
	}
	for _, c := range others {
		d.settle(c, sum)
	}
}

// settle decides, and lets go of a process that nobody else will close.
func (d *decider) settle(c *candidate, sum *checksum) {
	if !d.decide(c, sum) {
		c.close()
	}
}
