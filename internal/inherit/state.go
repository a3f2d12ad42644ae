// SPDX-License-Identifier: Apache-2.0

package inherit

import (
	"bytes"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// SignalSet is a set of signals in the kernel's layout: bit n-1 is signal n.
type SignalSet uint64

// Has tells whether sig is in the set.
func (s SignalSet) Has(sig syscall.Signal) bool {
	return sig > 0 && sig <= 64 && s&(1<<(uint(sig)-1)) != 0
}

// With returns the set with sig added.
func (s SignalSet) With(sig syscall.Signal) SignalSet {
	return s | 1<<(uint(sig)-1)
}

// Without returns the set with sig taken away.
func (s SignalSet) Without(sig syscall.Signal) SignalSet {
	return s &^ (1 << (uint(sig) - 1))
}

// Signals lists the members in ascending order.
func (s SignalSet) Signals() []syscall.Signal {
	var list []syscall.Signal
	for n := syscall.Signal(1); n <= 64; n++ {
		if s.Has(n) {
			list = append(list, n)
		}
	}
	return list
}

// State is what the process was started with.
type State struct {
	// Exact is false when the record was not made ahead of the runtime; then
	// Closed is empty, and Ignored and Blocked may lack members.
	Exact bool
	// Closed has bit n set when descriptor n (0, 1, 2) was closed.
	Closed uint8
	// Ignored are the signals with disposition "ignore".
	Ignored SignalSet
	// Blocked is the signal mask.
	Blocked SignalSet
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
		Ignored: SignalSet(ignored),
		Blocked: SignalSet(blocked),
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
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		s.Blocked, _ = StatusSet(status, "SigBlk")
	}
	return s
}

// StatusSet takes one signal set (SigBlk, SigIgn, SigCgt, SigPnd, ShdPnd) out
// of the text of /proc/PID/status; false when it is not there.
func StatusSet(status []byte, name string) (SignalSet, bool) {
	_, rest, ok := bytes.Cut(status, []byte("\n"+name+":"))
	if !ok {
		return 0, false
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	set, err := strconv.ParseUint(strings.TrimSpace(string(line)), 16, 64)
	return SignalSet(set), err == nil
}
