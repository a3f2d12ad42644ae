// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Request is a change that is asked for in a process.
type Request struct {
	Process access.Process
	Change  *attunev1.Change

	journal *Journal // nil in a preview that belongs to nobody
	undos   newUndos
	origin  string
	policy  func() *policy.Policy // nil: a user's own processes
	asker   *attunev1.Principal   // nil: the controller's own user, whoever that is
	log     *slog.Logger
}

// Log is where to say what the answer does not tell; of an undo nowhere.
func (r *Request) Log() *slog.Logger { return cmp.Or(r.log, slog.New(slog.DiscardHandler)) }

// Origin tells the actions of one controller from those of another in a process.
func (r *Request) Origin() string { return r.origin }

// Begin writes a change down, and again when it is more than was written down before.
func (r *Request) Begin(p *Plan) error {
	if p.lineage == (access.Lineage{}) {
		var err error
		if p.lineage, err = lineageOf(r.Process, p.Undo); err != nil {
			r.Log().Warn("the forks of a process cannot be told: they keep a change when it is undone",
				"change", r.Change.GetId(), "pid", r.Process.PID(), "error", err)
		}
	}
	return r.journal.begin(r.Change.GetId(), r.Change.GetKnob(), r.Process.Identity(), p)
}

// RefuseLater refuses a change at another safe point than now; what names it.
func (r *Request) RefuseLater(what string) error {
	kind := r.Change.GetSafePoint().GetKind()
	if kind == attunev1.SafePoint_KIND_UNSPECIFIED || kind == attunev1.SafePoint_KIND_NOW {
		return nil
	}
	return fmt.Errorf("%w: %s at safe point \"now\" only", access.ErrRefused, what)
}

// Allowed asks the policy. Every plan does so before it looks at the process'
// memory. names are all that the thing is known by.
func (r *Request) Allowed(action string, values []*attunev1.Value, names ...string) error {
	// The memory is opened before the owner is asked: then what is written is of the
	// image that was asked about, or fails. What needs no memory is allowed without.
	if _, err := r.Process.Hold(); err != nil && !errors.Is(err, proc.ErrPermission) {
		return err
	}
	owner, err := r.owner()
	if err != nil {
		return err
	}
	var rules *policy.Policy // nil has an answer, too
	if r.policy != nil {
		rules = r.policy()
	}
	err = rules.Check(policy.Request{
		Action: action, Names: names, Values: values, Asker: cmp.Or(r.asker, authn.Self()), Owner: owner,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", access.ErrRefused, err)
	}
	return nil
}

// owner is whose process it is for who asks. Where that is not the
// controller's own user, the kernel does not look after the difference.
func (r *Request) owner() (int, error) {
	if r.asker == nil {
		return access.OwnerOf(r.Process.PID())
	}
	owner, err := procid.Owner(r.Process.PID())
	return int(owner), err
}

// Item is one change of a set.
type Item struct {
	// Process that it is made in; nil: it has ended.
	Process access.Process
	Change  *attunev1.Change
}
