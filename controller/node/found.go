// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"log/slog"

	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/internal/logging"
	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

var _ discover.Handler = found{}

// found takes what discovery tells of processes.
type found struct {
	rules    rules
	sessions *sessions
	notes    *notes
	log      *slog.Logger
}

// Found takes a process that the policy allows to be taken.
func (f found) Found(p discover.Found) bool {
	if p.Held == nil {
		return false // it has ended
	}
	taken := f.offer(p)
	if !taken {
		_ = p.Held.Close() // it is open until here
	}
	return taken
}

func (f found) offer(p discover.Found) bool {
	process := p.Process
	o := order{registration: p.Registration, job: process.GetJob(), uid: process.GetUid()}
	o.grant = f.rules.granted(p.Registration, o.uid, process.GetExecutable())
	if o.grant.mode == "" {
		f.sessions.refused(o.grant.refused)
		f.Mismatch(mismatch(p.Registration, process, o.grant.reason))
		return false
	}
	if owner, err := procid.Owner(p.Held.PID()); err != nil || owner != o.uid {
		f.sessions.refused(metrics.RefusedRights)
		f.Mismatch(mismatch(p.Registration, process, "it has more rights than its user, or has ended"))
		return false
	}
	_, err := f.sessions.takeProcess(o, p.Held)
	if errors.Is(err, errTooMany) || errors.Is(err, errTooManyWait) {
		f.Mismatch(mismatch(p.Registration, process, err.Error()))
		return false
	}
	if err != nil {
		f.log.Debug("process is left alone", "pid", p.Held.PID(), "reason", err)
		return false
	}
	return true
}

func mismatch(r *attunev1.Registration, process *attunev1.Process, reason string) *attunev1.Mismatch {
	return &attunev1.Mismatch{
		Registration: r.GetId(), Pid: process.GetIdentity().GetPid(), Uid: process.GetUid(),
		Executable: process.GetExecutable(), Reason: reason,
	}
}

// Mismatch notes who is left alone.
func (f found) Mismatch(m *attunev1.Mismatch) {
	f.log.Info("process is left alone", "pid", m.GetPid(), logging.UserKey, m.GetUid(), "executable", m.GetExecutable(), "reason", m.GetReason())
	f.notes.mismatch(m)
}
