// SPDX-License-Identifier: Apache-2.0

package inherit

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/attune-hpc/attune/internal/procid"
)

// State is what the process was started with.
type State struct {
	// Exact is false when the record was not made ahead of the runtime; then
	// Closed is empty, and Ignored and Blocked may lack members.
	Exact bool
	// Closed has bit n set when descriptor n (0, 1, 2) was closed.
	Closed uint8
	// Ignored are the signals with disposition "ignore".
	Ignored procid.Signals
	// Blocked is the signal mask.
	Blocked procid.Signals
}

// FDClosed tells whether descriptor fd (0, 1, 2) was closed at the start.
func (s State) FDClosed(fd int) bool { return s.Closed&(1<<fd) != 0 }

// Get returns the state. It is safe for concurrent use.
func Get() State {
	if captured == 0 {
		return visible()
	}
	return State{
		Exact:   true,
		Closed:  uint8(closed),
		Ignored: procid.Signals(ignored),
		Blocked: procid.Signals(blocked),
	}
}

// visible is what the runtime leaves to see: it keeps an ignored SIGHUP and
// SIGINT, and its threads start with the inherited mask less a few signals.
func visible() State {
	var s State
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(sig) {
			s.Ignored = s.Ignored.With(sig)
		}
	}
	if status, err := procid.ReadStatus(os.Getpid()); err == nil {
		s.Blocked = status.Blocked
	}
	return s
}

// WitnessArg is the argv[0] with which a process that was linked with the entry
// does nothing but wait for the end of its standard input; package launch uses
// it to learn which signals were sent to the whole process group. Only where
// State.Exact is true.
const WitnessArg = "attune-witness"

// Written by attune_entry before the runtime starts; see entry_amd64.s.
var (
	captured uint64
	closed   uint64
	ignored  uint64
	blocked  uint64
	// action receives one struct sigaction of the kernel: handler, flags,
	// restorer, mask.
	action [4]uint64 //nolint:unused // only by that code
)
