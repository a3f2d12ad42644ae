// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Status is the status file of a process or of one of its threads
// (proc_pid_status(5)). What the kernel does not tell is zero.
type Status struct {
	// State is the letter of the scheduler's state, such as 'R' or 'Z'.
	State byte
	// Process is the id of the process that the thread belongs to, Parent that of
	// its parent, and Tracer the thread that traces it, 0 if there is none.
	Process, Parent, Tracer int
	// Inner is the thread's id in its own, the innermost, pid namespace, and Depth in
	// how many it has one, that of /proc the first.
	Inner, Depth  int
	Users, Groups IDs
	// Capabilities are the permitted ones, a bit each, Effective those that the kernel asks
	// for, Bounding those that an exec could give.
	Capabilities, Effective, Bounding uint64
	// NoNewPrivileges says that no exec gives rights.
	NoNewPrivileges bool
	// Pending signals are the thread's own, Shared those of its process.
	Pending, Shared, Blocked, Ignored, Caught Signals
	// Locked, Resident and Peak are memory of the process: what it has locked, what it
	// has now and what it had at most, bytes.
	Locked, Resident, Peak uint64
	// Seccomp is the mode of seccomp(2), Filters how many filters there are.
	Seccomp, Filters int
	// ShadowStack says that the processor keeps the thread's return addresses.
	ShadowStack bool

	known known
}

// IDs are the user ids, or the group ids, of a thread.
type IDs struct{ Real, Effective, Saved, Files uint32 }

// Same says whether all four are one.
func (i IDs) Same() bool {
	return i == IDs{i.Effective, i.Effective, i.Effective, i.Effective}
}

// Signals is a set of signals, in the order of the kernel's bits.
type Signals uint64

// Has says whether a signal is in the set.
func (s Signals) Has(signal unix.Signal) bool { return signal > 0 && s>>(uint(signal)-1)&1 != 0 }

// With returns the set with a signal added.
func (s Signals) With(signal unix.Signal) Signals { return s | 1<<(uint(signal)-1) }

// Without returns the set with a signal taken away.
func (s Signals) Without(signal unix.Signal) Signals { return s &^ (1 << (uint(signal) - 1)) }

// List lists the signals in ascending order.
func (s Signals) List() (list []unix.Signal) {
	for signal := unix.Signal(1); signal <= 64; signal++ {
		if s.Has(signal) {
			list = append(list, signal)
		}
	}
	return list
}

// harmless are the signals that do nothing to a program that has no handler.
const harmless Signals = 1<<(uint(unix.SIGCHLD)-1) | 1<<(uint(unix.SIGURG)-1) |
	1<<(uint(unix.SIGWINCH)-1) | 1<<(uint(unix.SIGCONT)-1)

// Discards says whether the thread's process takes no notice of a signal.
func (s Status) Discards(signal unix.Signal) bool {
	return (s.Ignored | harmless&^s.Caught).Has(signal)
}

// Ended says whether the thread has ended.
func (s Status) Ended() bool { return s.State == 'Z' || s.State == 'X' }

// known says which lines were there that nobody can do without.
type known struct{ users, groups, capabilities bool }

// maxStatusBytes is more than a status file of /proc has.
const maxStatusBytes = 64 << 10

// ReadStatus reads the status of a process. [ErrGone] if it has been reaped.
func ReadStatus(pid int) (Status, error) {
	return readStatus(pid, "status")
}

// ReadThread reads the status of one thread. [ErrGone] if it has ended, or is not of
// the process.
func ReadThread(pid, tid int) (Status, error) {
	return readStatus(pid, "task/"+strconv.Itoa(tid)+"/status")
}

func readStatus(pid int, name string) (Status, error) {
	content, err := ReadFile(pid, name, maxStatusBytes)
	if err != nil {
		return Status{}, err
	}
	s, err := ParseStatus(string(content))
	if err == nil {
		err = s.whole()
	}
	return s, err
}

// whole is [ErrMalformed] where a line is missing without which zeroes would be taken
// for root's ids.
func (s Status) whole() error {
	if s.known != (known{true, true, true}) {
		return fmt.Errorf("%w: status without ids or capabilities", ErrMalformed)
	}
	return nil
}

// ParseStatus parses a status file. [ErrMalformed] if a line that it reads is not
// what the kernel writes.
func ParseStatus(content string) (Status, error) {
	var s Status
	for line := range strings.Lines(content) {
		name, value, _ := strings.Cut(line, ":")
		if err := s.parse(name, strings.Fields(value)); err != nil {
			return Status{}, fmt.Errorf("%w: status with %q", ErrMalformed, line)
		}
	}
	return s, nil
}

// parse reads one line.
func (s *Status) parse(name string, fields []string) (err error) {
	switch name {
	case "State":
		if len(fields) == 0 {
			return ErrMalformed
		}
		s.State = fields[0][0]
	case "Tgid":
		s.Process, err = number(fields)
	case "PPid":
		s.Parent, err = number(fields)
	case "TracerPid":
		s.Tracer, err = number(fields)
	case "NSpid":
		s.Depth = len(fields)
		s.Inner, err = number(fields[max(len(fields)-1, 0):])
	case "Uid":
		s.known.users = true
		s.Users, err = parseIDs(fields)
	case "Gid":
		s.known.groups = true
		s.Groups, err = parseIDs(fields)
	case "CapPrm":
		s.known.capabilities = true
		s.Capabilities, err = parseMask(fields)
	case "CapEff":
		s.Effective, err = parseMask(fields)
	case "CapBnd":
		s.Bounding, err = parseMask(fields)
	case "NoNewPrivs":
		s.NoNewPrivileges = slices.Equal(fields, []string{"1"})
	case "Seccomp":
		s.Seccomp, err = number(fields)
	case "Seccomp_filters":
		s.Filters, err = number(fields)
	case "x86_Thread_features":
		s.ShadowStack = slices.Contains(fields, "shstk")
	default:
		if size := s.size(name); size != nil {
			*size, err = parseSize(fields)
		}
		if set := s.signals(name); set != nil {
			*set, err = parseSet(fields)
		}
	}
	return err
}

// size returns the memory that a line tells; nil: none.
func (s *Status) size(name string) *uint64 {
	switch name {
	case "VmLck":
		return &s.Locked
	case "VmRSS":
		return &s.Resident
	case "VmHWM":
		return &s.Peak
	}
	return nil
}

// signals returns the signals that a line tells; nil: none.
func (s *Status) signals(name string) *Signals {
	switch name {
	case "SigPnd":
		return &s.Pending
	case "ShdPnd":
		return &s.Shared
	case "SigBlk":
		return &s.Blocked
	case "SigIgn":
		return &s.Ignored
	case "SigCgt":
		return &s.Caught
	}
	return nil
}

// number reads the first field.
func number(fields []string) (int, error) {
	if len(fields) == 0 {
		return 0, ErrMalformed
	}
	return strconv.Atoi(fields[0])
}

// parseSize reads a number of kilobytes, and returns bytes.
func parseSize(fields []string) (uint64, error) {
	if len(fields) != 2 || fields[1] != "kB" {
		return 0, ErrMalformed
	}
	n, err := strconv.ParseUint(fields[0], 10, 54)
	return n << 10, err
}

func parseMask(fields []string) (uint64, error) {
	if len(fields) != 1 {
		return 0, ErrMalformed
	}
	return strconv.ParseUint(fields[0], 16, 64)
}

func parseSet(fields []string) (Signals, error) {
	mask, err := parseMask(fields)
	return Signals(mask), err
}

func parseIDs(fields []string) (IDs, error) {
	var ids [4]uint32
	if len(fields) != len(ids) {
		return IDs{}, ErrMalformed
	}
	for i, field := range fields {
		id, err := strconv.ParseUint(field, 10, 32)
		if err != nil {
			return IDs{}, err
		}
		ids[i] = uint32(id)
	}
	return IDs{ids[0], ids[1], ids[2], ids[3]}, nil
}

// UserID returns the real user id of a process; [ErrGone] if it has ended.
func UserID(pid int) (uint32, error) {
	s, err := ReadStatus(pid)
	return s.Users.Real, err
}

// InnerID is the id of a thread as its process sees it, in the innermost pid
// namespace. [ErrGone] if it has ended.
func InnerID(pid, tid int) (int, error) {
	s, err := ReadThread(pid, tid)
	if err == nil && s.Depth == 0 {
		err = fmt.Errorf("%w: status of %d without NSpid", ErrMalformed, tid)
	}
	return s.Inner, err
}

// OuterID is the inverse of InnerID: the id of a thread as this process sees it, from the
// one that its process has for it; 0 if there is no such thread.
func OuterID(pid, inner int) (int, error) {
	is := func(tid int) bool {
		own, err := InnerID(pid, tid)
		return err == nil && own == inner || errors.Is(err, ErrMalformed) && tid == inner
	}
	if is(inner) { // no namespace, or the same id in it
		return inner, nil
	}
	tids, _, err := AllThreads(pid)
	if i := slices.IndexFunc(tids, is); i >= 0 {
		return tids[i], nil
	}
	return 0, err
}

// Nested says whether a process is in a pid namespace below that of /proc, and so
// has other ids there. [ErrGone] if it has ended.
func Nested(pid int) (bool, error) {
	s, err := ReadStatus(pid)
	if err == nil && s.Depth == 0 {
		err = fmt.Errorf("%w: status of %d without NSpid", ErrMalformed, pid)
	}
	return s.Depth > 1, err
}
