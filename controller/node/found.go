// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// grant is what the policy allows in a session.
type grant struct {
	mode   string // the most; "": nothing
	reason string
}

// untouched is why nothing may be changed; empty: the policy of actions decides.
func (g grant) untouched() string {
	switch g.mode {
	case "tune":
		return ""
	case "":
		return g.reason
	}
	return fmt.Sprintf("the policy of this node allows to %s: %s", g.mode, g.reason)
}

// granted asks what may be done to a process of a user for a registration.
func (n *Node) granted(r *attunev1.Registration, uid uint32, executable string) grant {
	if reason, off := n.switchedOff(); off {
		return grant{reason: reason}
	}
	mode, reason := n.config.Policy().Service(policy.Asking{Owner: r.GetOwner(), UID: uid, Executable: executable})
	if asked := slices.Index(policy.Modes, r.GetMode()); asked >= 0 && asked < slices.Index(policy.Modes, mode) {
		return grant{mode: r.GetMode(), reason: "no more is asked for"}
	}
	return grant{mode: mode, reason: reason}
}

var _ discover.Handler = found{}

// found is what discovery tells of processes.
type found struct{ *Node }

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
	o := order{registration: p.Registration, job: p.Job, uid: process.GetUid(), executable: process.GetExecutable()}
	o.grant = f.granted(p.Registration, o.uid, process.GetExecutable())
	if o.grant.mode == "" {
		f.Mismatch(mismatch(p.Registration, process, o.grant.reason))
		return false
	}
	if owner, err := procid.Owner(p.Held.PID()); err != nil || owner != o.uid {
		f.Mismatch(mismatch(p.Registration, process, "it has more rights than its user, or has ended"))
		return false
	}
	_, err := f.take(o, p.Held)
	if errors.Is(err, errTooMany) {
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
	f.log.Info("process is left alone", "pid", m.GetPid(), "executable", m.GetExecutable(), "reason", m.GetReason())
	f.notes.mismatch(m)
}

// alive says whether a noted process is still there.
func alive(pid int32) bool {
	stat, err := procid.ReadStat(int(pid))
	return err == nil && !stat.Zombie()
}
