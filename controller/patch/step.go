// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"slices"
)

// Step is a named action, in a form that can be written down: one of the
// pointers is set.
type Step struct {
	Name      string     `json:"name"`
	Parameter *Parameter `json:"parameter,omitempty"`
	Call      *Call      `json:"call,omitempty"`
	Remove    *Remove    `json:"remove,omitempty"`
	Replace   *Replace   `json:"replace,omitempty"`
}

// StepOf gives an action a name.
func StepOf(name string, a Action) Step {
	s := Step{Name: name}
	switch a := a.(type) {
	case Parameter:
		s.Parameter = &a
	case Call:
		s.Call = &a
	case Remove:
		s.Remove = &a
	case Replace:
		s.Replace = &a
	}
	return s
}

// Action returns the action; nil if there is none.
func (s Step) Action() Action {
	switch {
	case s.Parameter != nil:
		return *s.Parameter
	case s.Call != nil:
		return *s.Call
	case s.Remove != nil:
		return *s.Remove
	case s.Replace != nil:
		return *s.Replace
	}
	return nil
}

// AtExit says whether the action is done at the exits of a function.
func (s Step) AtExit() bool { return s.Call != nil && s.Call.AtExit }

// TakesResult says whether the action needs what the function returns.
func (s Step) TakesResult() bool {
	return s.Call != nil && slices.ContainsFunc(s.Call.Arguments, func(a Argument) bool { return a.Source == FromResult })
}

// EachCall says whether the action would be done again in each turn of a loop
// that goes back to the entry. One that is done instead of the function ends the
// loop.
func (s Step) EachCall() bool { return !s.AtExit() && !s.Instead() }

// Instead says whether it is done in place of the function.
func (s Step) Instead() bool { return s.Remove != nil || s.Replace != nil }

var errNotOneAction = errors.New("a step that is not one action")

// check is Check for a step that somebody else wrote down: only one action of it
// would be checked, but all that are set would be done.
func (s Step) check() error {
	set := 0
	for _, is := range []bool{s.Parameter != nil, s.Call != nil, s.Remove != nil, s.Replace != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return errNotOneAction
	}
	return Check(s.Action())
}
