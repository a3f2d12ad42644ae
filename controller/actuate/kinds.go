// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"fmt"
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Route is the ways that an action tries.
type Route struct {
	// Action as [attunev1.ActionKinds] has it.
	Action string
	// What is changed, and the Command that does so.
	What, Command string
	// Ways in the order in which they are tried.
	Ways []Way
	// Remark says when the next one is tried, and what is not covered.
	Remark string
	// Undo says what undoing does.
	Undo string
}

// actionKind is one kind of action: what people are told of it, and what is done.
type actionKind struct {
	Route
	// plan checks an action and reads the old value. Nothing is touched.
	plan func(ctx context.Context, a *Actuator, process Process, change *attunev1.Change) (*plan, error)
}

// actionKinds are all kinds of actions, each in a file of its own, in the order of
// the page.
func actionKinds() []actionKind {
	return []actionKind{
		setKind(), callKind(), loadKind(), replaceKind(), removeKind(), paramKind(), insertKind(), settingKind(), systemKind(),
	}
}

// Routes returns the ways of every action; docs/reference/actions.md is made
// from it.
func Routes() []Route {
	var all []Route
	for _, kind := range actionKinds() {
		all = append(all, kind.Route)
	}
	return all
}

// kindOf finds the kind of an action.
func kindOf(action *attunev1.Action) (actionKind, bool) {
	name, all := attunev1.DescribeAction(action).Kind, actionKinds()
	at := slices.IndexFunc(all, func(k actionKind) bool { return k.Action == name })
	if at < 0 {
		return actionKind{}, false
	}
	return all[at], true
}

// FromOutside says whether an action is the same with and without DMLib in the
// process.
func FromOutside(action *attunev1.Action) bool {
	kind, known := kindOf(action)
	inside := func(w Way) bool { return w != WayMemory && w != WaySystem }
	return known && !slices.ContainsFunc(kind.Ways, inside)
}

// plan checks an action and reads the old value. Nothing is touched.
func (a *Actuator) plan(ctx context.Context, process Process, change *attunev1.Change) (*plan, error) {
	kind, known := kindOf(change.GetAction())
	if !known {
		return nil, fmt.Errorf("%w: change %s has no action this controller knows", ErrRefused, change.GetId())
	}
	return kind.plan(ctx, a, process, change)
}
