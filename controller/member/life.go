// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"sync"

	"github.com/attune-hpc/attune/controller/shm"
)

// State is where a member is in its life.
type State uint8

// The states, see the chart of the package.
const (
	// Seen: the tracker has told of it. It may come to the start gate.
	Seen State = iota
	// Foreign: it must be left alone, for a reason that OutOfReach tells.
	Foreign
	// Outside: measure points are placed, without DMLib.
	Outside
	// Awaiting is Outside where DMLib may be brought in yet.
	Awaiting
	// Registered: DMLib has come. Measure points are about to be placed by it.
	Registered
	// Inside: measure points are placed with DMLib.
	Inside
	// Gone: the image has ended.
	Gone
)

// Errors of Register.
var (
	ErrGone       = errors.New("it has ended")
	errRegistered = errors.New("registered twice")
)

// life is the state of a member, with what came with it. The zero value is Seen.
type life struct {
	mu         sync.Mutex // a leaf lock
	state      State
	before     State       // the one before Gone
	memory     *shm.Memory // from Registered on; it outlasts the image
	outOfReach error       // of Foreign
}

// State returns where the member is in its life.
func (l *life) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Alive says whether the process still runs the same image, as far as the
// tracker knows.
func (l *life) Alive() bool { return l.State() != Gone }

// Expected says whether DMLib may yet come.
func (l *life) Expected() bool { return l.State() == Awaiting }

// Memory is what DMLib shares with the controller; nil without DMLib.
func (l *life) Memory() *shm.Memory {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.memory
}

// OutOfReach is why a member is left alone; nil if it is not.
func (l *life) OutOfReach() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outOfReach
}

// LeaveAlone makes a member Foreign that was just seen.
func (l *life) LeaveAlone(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == Seen {
		l.state, l.outOfReach = Foreign, reason
	}
}

// AdmitOutside admits a member that has not come to the gate; late says that DMLib
// may be brought in. False: it was admitted, has come or has ended meanwhile.
func (l *life) AdmitOutside(late bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != Seen {
		return false
	}
	if l.state = Outside; late {
		l.state = Awaiting
	}
	return true
}

// GiveUpLibrary notes that DMLib will not be brought in. False: it was not awaited.
func (l *life) GiveUpLibrary() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != Awaiting {
		return false
	}
	l.state = Outside
	return true
}

// Register takes the memory over that DMLib shares. With an error it is still the
// caller's.
func (l *life) Register(memory *shm.Memory) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.state {
	case Seen, Outside, Awaiting:
		l.state, l.memory = Registered, memory
		return nil
	case Foreign:
		return l.outOfReach
	case Gone:
		return ErrGone
	}
	return errRegistered
}

// AdmitInside admits a member that was registered. False: it has ended meanwhile.
func (l *life) AdmitInside() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != Registered {
		return false
	}
	l.state = Inside
	return true
}

// End notes that the image has ended, and returns the state that it was in.
func (l *life) End() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != Gone {
		l.state, l.before = Gone, l.state
	}
	return l.before
}
