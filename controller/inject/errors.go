// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// Errors of the operations; each comes with its particulars. All but the last are the
// tracer's, whose comments say what they mean.
var (
	ErrUnsuited    = tracer.ErrUnsuited
	ErrForNow      = tracer.ErrForNow
	ErrDenied      = tracer.ErrDenied
	ErrNoSafePoint = tracer.ErrNoSafePoint
	ErrTimeout     = tracer.ErrTimeout
	ErrCall        = tracer.ErrCall
	ErrInterrupted = tracer.ErrInterrupted
	ErrBusy        = tracer.ErrBusy
	// ErrHeld says that another controller has the process.
	ErrHeld = errors.New("another attune controls the process")
)

// interrupted says of an error that the process' end, or its becoming another program,
// is why.
func interrupted(process *proc.Handle, err error) error {
	if err != nil && !errors.Is(err, procid.ErrGone) && (ending(process) || errors.Is(err, proc.ErrImageGone)) {
		err = fmt.Errorf("%w: %w", ErrInterrupted, err)
	}
	return err
}

// ending says whether a process has ended, or is about to: its memory goes first,
// and with it all that was to be read and written there.
func ending(process *proc.Handle) bool {
	if !process.Process.Alive() {
		return true
	}
	stat, err := procid.ReadStat(process.PID())
	return err == nil && procid.Dying(process.PID(), stat)
}
