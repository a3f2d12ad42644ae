// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/attune-hpc/attune/controller/actuate/access"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Route is the ways that an action tries.
type Route struct {
	// Action as [attunev1.ActionKinds] has it.
	Action string
	// What is changed, and the Command that does so.
	What, Command string
	// Ways in the order in which they are tried.
	Ways []access.Way
	// Remark says when the next one is tried, and what is not covered.
	Remark string
	// Undo says what undoing does.
	Undo string
}

// Kind is one kind of action: what people are told of it, and what is done.
type Kind struct {
	Route
	// Plan checks an action and reads the old value. Nothing is touched.
	Plan func(ctx context.Context, r *Request) (*Plan, error)
	// Joint makes those that change several processes at one moment; nil: none does.
	Joint Joint
}

// Kinds are all kinds of actions, in the order of their page, and all ways of taking
// them back beside that of words of memory. The zero value knows none.
type Kinds struct {
	Actions []Kind
	// Undos make an empty undo each, for the journal to fill in; see [Empty].
	Undos []func() Undo
}

// Empty makes an empty undo of a type.
func Empty[T any, P interface {
	*T
	Undo
}]() Undo {
	return P(new(T))
}

// And returns the kinds of both.
func (k Kinds) And(other Kinds) Kinds {
	return Kinds{Actions: slices.Concat(k.Actions, other.Actions), Undos: slices.Concat(k.Undos, other.Undos)}
}

// Routes returns the ways of every action; docs/reference/actions.md is made
// from it.
func (k Kinds) Routes() []Route {
	var all []Route
	for _, kind := range k.Actions {
		all = append(all, kind.Route)
	}
	return all
}

// of finds the kind of an action.
func (k Kinds) of(action *attunev1.Action) (Kind, bool) {
	name := attunev1.DescribeAction(action).Kind
	at := slices.IndexFunc(k.Actions, func(k Kind) bool { return k.Action == name })
	if at < 0 {
		return Kind{}, false
	}
	return k.Actions[at], true
}

// FromOutside says whether an action is the same with and without DMLib in the
// process.
func (k Kinds) FromOutside(action *attunev1.Action) bool {
	kind, known := k.of(action)
	inside := func(w access.Way) bool { return w != access.WayMemory && w != access.WaySystem }
	return known && !slices.ContainsFunc(kind.Ways, inside)
}

// plan checks an action and reads the old value. Nothing is touched.
func (a *Actuator) plan(ctx context.Context, process access.Process, change *attunev1.Change) (*Plan, error) {
	kind, known := a.options.Kinds.of(change.GetAction())
	if !known {
		return nil, fmt.Errorf("%w: change %s has no action this controller knows", access.ErrRefused, change.GetId())
	}
	return kind.Plan(ctx, &Request{Process: process, Change: change, actuator: a})
}

// Request is a change that is asked for in a process.
type Request struct {
	Process access.Process
	Change  *attunev1.Change

	actuator *Actuator
}

// Log is where to say what the answer does not tell.
func (r *Request) Log() *slog.Logger { return r.actuator.log }

// Origin tells the actions of one controller from those of another in a process.
func (r *Request) Origin() string { return r.actuator.options.Origin }

// Begin writes a change down again when it is more than was written down before.
func (r *Request) Begin(p *Plan) error {
	return r.actuator.options.Journal.begin(r.Change.GetId(), r.Change.GetKnob(), r.Process.Identity(), p)
}

// RefuseLater refuses a change at another safe point than now; what names it.
func (r *Request) RefuseLater(what string) error {
	kind := r.Change.GetSafePoint().GetKind()
	if kind == attunev1.SafePoint_KIND_UNSPECIFIED || kind == attunev1.SafePoint_KIND_NOW {
		return nil
	}
	return fmt.Errorf("%w: %s at safe point \"now\" only", access.ErrRefused, what)
}
