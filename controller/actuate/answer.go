// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func gone(change *attunev1.Change) *attunev1.ActionResult {
	return &attunev1.ActionResult{
		ChangeId: change.GetId(), Outcome: attunev1.Outcome_OUTCOME_GONE, Reason: "process has ended",
	}
}

// answer says what an error means.
func answer(result *attunev1.ActionResult, process access.Process, err error) {
	switch {
	case err == nil:
		result.Outcome = attunev1.Outcome_OUTCOME_APPLIED
		return
	case !process.Alive(), still(process) != nil, errors.Is(err, procid.ErrGone) && !errors.Is(err, access.ErrRefused):
		result.Outcome = attunev1.Outcome_OUTCOME_GONE
		result.Reason = "process has ended"
		return
	case errors.Is(err, access.ErrRefused):
		result.Outcome = attunev1.Outcome_OUTCOME_REFUSED
	default:
		result.Outcome = attunev1.Outcome_OUTCOME_FAILED
	}
	result.Reason = err.Error()
}

// still is an error if the image has gone that a change is for, which the process may
// not be known to have replaced. Its memory may be there: another may share it.
func still(process access.Process) error {
	held, err := process.Hold()
	switch {
	case err == nil:
		return held.Current()
	case errors.Is(err, proc.ErrImageGone):
		return err
	}
	return nil // it cannot be seen, and no memory is needed
}

// answerJoint says what an error means. A process that has ended is a failure: the
// others must not be changed without it.
func answerJoint(result *attunev1.ActionResult, left bool, err error) {
	switch {
	case err == nil:
		result.Outcome = attunev1.Outcome_OUTCOME_APPLIED
		return
	case left:
		result.Outcome = attunev1.Outcome_OUTCOME_FAILED
	default:
		result.Outcome = attunev1.Outcome_OUTCOME_REFUSED
	}
	result.Reason = err.Error()
}

func failed(result *attunev1.ActionResult) bool {
	return result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED && result.GetOutcome() != attunev1.Outcome_OUTCOME_GONE
}

// dying says that a process has ended or is about to: it has no memory any more,
// although it may count as alive.
func dying(process access.Process) bool {
	_, err := objfile.Mappings(process.PID())
	return !process.Alive() || errors.Is(err, procid.ErrGone)
}

// also adds what went wrong afterwards, in the same line.
func also(err, afterwards error) error {
	if afterwards == nil {
		return err
	}
	return fmt.Errorf("%w; then: %w", err, afterwards)
}
