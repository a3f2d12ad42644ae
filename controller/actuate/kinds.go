// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
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

// Joint makes changes of several processes at one moment: in all of them, or in none.
type Joint interface {
	// Together names what an action changes in several processes; actions of one name
	// are made together. false: it changes one process.
	Together(action *attunev1.Action) (name string, ok bool)
	// Gather finds what can be found without a stop.
	Gather(unit []*Request) (Gathering, error)
}

// Gathering is processes that are changed together. It belongs to one goroutine.
type Gathering interface {
	// Meet brings all processes to one place and makes the change there, or looks at it
	// only, where begin is nil. begin is called when all stand, with the change that
	// they share. left: some may have been changed, and not changed back.
	Meet(ctx context.Context, begin func(*Plan) error) (left bool, err error)
	// Part is what became of the process with that index, after Meet.
	Part(index int) Part
}

// Part is a joint change in one of its processes.
type Part struct {
	Old, New *attunev1.Value
	How      access.Done
}
