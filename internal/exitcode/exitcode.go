// SPDX-License-Identifier: Apache-2.0

package exitcode

import "errors"

// The codes. A program that ran under Attune keeps its own code; these are
// only seen when it did not run, and from the other commands.
const (
	// OK is success.
	OK = 0
	// Failure is any failure that has no code of its own.
	Failure = 1
	// Usage is a command line or setting that is known to be wrong before
	// anything was started.
	Usage = 2
	// CannotExecute means that the program was found and cannot be executed.
	CannotExecute = 126
	// NotFound means that there is no such program.
	NotFound = 127
	// SignalBase plus a signal's number is the code of a program that was
	// killed by it, where dying by the signal itself is not possible.
	SignalBase = 128
)

// Error is an error with its exit code and what to do about it.
type Error struct {
	// Code is the exit code.
	Code int
	// Err is what happened.
	Err error
	// Remedy says what to do; empty if there is nothing to say.
	Remedy string
}

// Error returns the cause and the remedy in one line.
func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + "; " + e.Remedy
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// UsageError makes an error with code Usage.
func UsageError(err error, remedy string) *Error {
	return &Error{Code: Usage, Err: err, Remedy: remedy}
}

// Of returns the code of err: OK for nil, Failure for an error without one.
func Of(err error) int {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Failure
}
