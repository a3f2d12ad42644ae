// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
	"slices"
)

// Step is a named action, which is done at the entry or the exits of a function, in a form that
// can be written down: one of the pointers is set.
type Step struct {
	Name      string     `json:"name"`
	Parameter *Parameter `json:"parameter,omitempty"`
	Call      *Call      `json:"call,omitempty"`
	Remove    *Remove    `json:"remove,omitempty"`
	Replace   *Replace   `json:"replace,omitempty"`
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

// Check says whether a step makes sense; somebody else may have written it down, and all that
// are set would be done. Errors wrap [ErrAction].
func (s Step) Check() error {
	var errs []error
	if s.Parameter != nil {
		errs = append(errs, s.Parameter.check())
	}
	if s.Call != nil {
		errs = append(errs, s.Call.check())
	}
	if s.Remove != nil {
		errs = append(errs, s.Remove.check())
	}
	if s.Replace != nil {
		errs = append(errs, s.Replace.check())
	}
	if len(errs) != 1 {
		errs = []error{errNotOneAction}
	}
	if errs[0] != nil {
		return fmt.Errorf("%w: %w", ErrAction, errs[0])
	}
	return nil
}
