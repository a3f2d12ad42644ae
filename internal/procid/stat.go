// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ErrGone says that the process does not exist any more: it has ended (a
// zombie included), or its pid belongs to another process by now.
var ErrGone = errors.New("process is gone")

// maxStatBytes is more than 52 numbers and a name take.
const maxStatBytes = 4096

// ErrMalformed says that a file of /proc does not look as the kernel writes
// it.
var ErrMalformed = errors.New("malformed /proc file")

// TicksPerSecond is the unit of all clock ticks in /proc. The kernel fixes it
// at 100 on every architecture that Attune builds for, whatever its own HZ.
const TicksPerSecond = 100

// Tick is one of them.
const Tick = time.Second / TicksPerSecond

// Stat holds the fields of /proc/PID/stat (or task/TID/stat) that Attune
// uses; see proc_pid_stat(5).
type Stat struct {
	// PID is the process or thread id.
	PID int
	// Comm is the name of the task, at most 15 bytes, of any characters.
	Comm string
	// State is one letter: R, S, D, Z, T, t, X or I.
	State byte
	// ParentPID, ProcessGroup and Session as in the reader's pid namespace; 0
	// if they lie outside of it.
	ParentPID, ProcessGroup, Session int
	// Kernel says that it is a thread of the kernel. Without memory is also a process that is
	// just ending.
	Kernel bool
	// Exiting says that the task, a process' first thread, is at its end.
	Exiting bool
	// Killed says that SIGKILL waits for it, of which the kernel gives one to each thread.
	Killed bool
	// MinorFaults and MajorFaults of all threads, ended ones included.
	MinorFaults, MajorFaults uint64
	// ReapedMinorFaults, ReapedMajorFaults, ReapedUserTicks and ReapedSystemTicks are of
	// the children that the process waited for, and of those that they waited for.
	ReapedMinorFaults, ReapedMajorFaults, ReapedUserTicks, ReapedSystemTicks uint64
	// UserTicks and SystemTicks are CPU time of all threads, ended ones
	// included, in clock ticks.
	UserTicks, SystemTicks uint64
	// Threads that live now.
	Threads int
	// StartTicks is the start time in clock ticks since boot.
	StartTicks uint64
	// VirtualBytes is the size of the address space.
	VirtualBytes uint64
	// ResidentPages is the resident memory in pages.
	ResidentPages uint64
	// HeapStart is where the heap begins (start_brk); 0 where the reader may not trace the
	// process.
	HeapStart uint64
	// LastCPU is the one that the task ran on last; 0 where the kernel does not
	// tell.
	LastCPU int
	// Image is made of addresses that an exec draws anew.
	Image Image
	// ExitCode is the wait status of a zombie, 0 without permission to see it.
	ExitCode int32
}

// Image tells two program images of one process apart: the addresses of
// code, stack and arguments, which address space randomisation draws anew at
// every exec. A fork keeps them. All are 0 where the reader may not trace the
// process; without randomisation (setarch -R) an exec of the same program
// looks the same.
type Image struct {
	// Code, Stack, Arguments and Environment are addresses in the process.
	Code, Stack, Arguments, Environment uint64
}

// Number is another one for another image, made of what a program does not say anew of
// itself, as it may of its arguments. It is 0 where the image does not show, and while
// exec(2) is at work, which first has the stack begin at the arguments, and tells where
// the code is in the end.
func (i Image) Number() uint64 {
	if i.Code == 0 || i.Stack == i.Arguments {
		return 0
	}
	sum := fnv.New64a()
	sum.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, i.Code), i.Stack))
	return sum.Sum64()
}

// Loading says that exec(2) is at work: the executable shows already, its arguments and environment may not.
func (i Image) Loading() bool { return i != Image{} && i.Number() == 0 }

// ImageOf is [Image.Number] of what a process executes now, by the stat file of its first
// thread; 0 if that has ended before the others.
func ImageOf(pid int) (uint64, error) {
	stat, err := ReadThreadStat(pid, pid)
	return stat.Image.Number(), err
}

// Zombie says whether the process has ended and only waits to be reaped. A
// process whose first thread has ended before the others is none: see
// Leaderless.
func (s *Stat) Zombie() bool { return s.Dead() && s.Threads <= 1 }

// Leaderless says whether the first thread of a process has ended and others
// go on. It has no memory any more before it shows as dead. Most files of
// /proc/PID are empty then, those of [LiveThread] are not.
func (s *Stat) Leaderless() bool { return s.Threads > 1 && (s.Dead() || s.VirtualBytes == 0) }

// Dead says whether the task, a process' first thread or the one whose file was read, has ended.
func (s *Stat) Dead() bool { return s.State == 'Z' || s.State == 'X' }

// ReadStat reads /proc/PID/stat. A process that does not exist is [ErrGone];
// a zombie is not an error here.
func ReadStat(pid int) (Stat, error) { return readStat(pid, "stat") }

// ReadThreadStat reads the stat file of one thread, which the kernel writes without a
// look at the others. [ErrGone] if it has ended, or is not of the process.
func ReadThreadStat(pid, tid int) (Stat, error) {
	return readStat(pid, "task/"+strconv.Itoa(tid)+"/stat")
}

func readStat(pid int, name string) (Stat, error) {
	data, err := ReadFile(pid, name, maxStatBytes)
	if err != nil {
		return Stat{}, err
	}
	return ParseStat(data)
}

// GoneError turns the errors by which /proc tells that a process has ended
// (ENOENT, ESRCH) into [ErrGone], and leaves others as they are.
func GoneError(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}

// ParseStat parses the content of a stat file. The task's name may hold
// blanks, parentheses and line ends, so fields are counted from the last ")".
func ParseStat(data []byte) (Stat, error) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 1 || end < open {
		return Stat{}, fmt.Errorf("%w: stat without name", ErrMalformed)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(data[:open])))
	if err != nil || pid < 0 {
		return Stat{}, fmt.Errorf("%w: stat without pid", ErrMalformed)
	}
	s := Stat{PID: pid, Comm: string(data[open+1 : end])}
	field := firstFieldAfterName
	for rest := data[end+1:]; ; field++ {
		var word []byte
		if word, rest = nextWord(rest); len(word) == 0 {
			break
		}
		if err := s.set(field, word); err != nil {
			return Stat{}, err
		}
	}
	if field <= lastNeededField {
		return Stat{}, fmt.Errorf("%w: stat ends at field %d", ErrMalformed, field-1)
	}
	return s, nil
}

// ParseState returns the state letter of a stat file and nothing else, in a
// tenth of the time.
func ParseState(data []byte) (byte, error) {
	rest := data[bytes.LastIndexByte(data, ')')+1:]
	if word, _ := nextWord(rest); len(rest) < len(data) && isState(word) {
		return word[0], nil
	}
	return 0, fmt.Errorf("%w: stat without state", ErrMalformed)
}

// isState says whether a word is a letter, as the kernel's states are.
func isState(word []byte) bool {
	return len(word) == 1 && (word[0] >= 'A' && word[0] <= 'Z' || word[0] >= 'a' && word[0] <= 'z')
}

// Field numbers as in proc_pid_stat(5), counted from 1. Kernels since 2.6
// write at least as far as the last needed one; 3.5 and later write them all.
const (
	firstFieldAfterName = 3
	flagsField          = 9
	lastNeededField     = 28
	pendingField        = 31
)

// nextWord is bytes.Cut after bytes.TrimLeft for two separators, written out:
// it runs fifty times per file.
func nextWord(data []byte) (word, rest []byte) {
	start := 0
	for start < len(data) && (data[start] == ' ' || data[start] == '\n') {
		start++
	}
	end := start
	for end < len(data) && data[end] != ' ' && data[end] != '\n' {
		end++
	}
	return data[start:end], data[end:]
}

func (s *Stat) set(field int, word []byte) error {
	if field == firstFieldAfterName {
		if !isState(word) {
			return fmt.Errorf("%w: state %q", ErrMalformed, word)
		}
		s.State = word[0]
		return nil
	}
	if field == flagsField {
		flags, ok := parseUint(word)
		if s.Kernel, s.Exiting = flags&kernelThread != 0, flags&exiting != 0; !ok {
			return fmt.Errorf("%w: flags %q", ErrMalformed, word)
		}
		return nil
	}
	if field == pendingField {
		pending, ok := parseUint(word)
		if s.Killed = pending&(1<<(unix.SIGKILL-1)) != 0; !ok {
			return fmt.Errorf("%w: signals %q", ErrMalformed, word)
		}
		return nil
	}
	target := s.unsigned(field)
	if target == nil {
		return s.setSigned(field, word)
	}
	value, ok := parseUint(word)
	if !ok {
		return fmt.Errorf("%w: field %d is %q", ErrMalformed, field, word)
	}
	*target = value
	return nil
}

// PF_KTHREAD and PF_EXITING of <linux/sched.h>.
const (
	kernelThread = 1 << 21
	exiting      = 1 << 2
)

func (s *Stat) unsigned(field int) *uint64 {
	switch field {
	case 10:
		return &s.MinorFaults
	case 11:
		return &s.ReapedMinorFaults
	case 12:
		return &s.MajorFaults
	case 13:
		return &s.ReapedMajorFaults
	case 14:
		return &s.UserTicks
	case 15:
		return &s.SystemTicks
	case 16:
		return &s.ReapedUserTicks
	case 17:
		return &s.ReapedSystemTicks
	case 22:
		return &s.StartTicks
	case 23:
		return &s.VirtualBytes
	case 24:
		return &s.ResidentPages
	case 26:
		return &s.Image.Code
	case 28:
		return &s.Image.Stack
	case 47:
		return &s.HeapStart
	case 48:
		return &s.Image.Arguments
	case 50:
		return &s.Image.Environment
	}
	return nil
}

func (s *Stat) setSigned(field int, word []byte) error {
	var target *int
	switch field {
	case 4:
		target = &s.ParentPID
	case 5:
		target = &s.ProcessGroup
	case 6:
		target = &s.Session
	case 20:
		target = &s.Threads
	case 39:
		target = &s.LastCPU
	case 52:
		// A signed 32-bit number; the kernel writes it as such.
		code, err := strconv.ParseInt(string(word), 10, 32)
		s.ExitCode = int32(code)
		return wrapMalformed(field, word, err)
	default:
		return nil
	}
	value, err := strconv.ParseInt(string(word), 10, 32)
	*target = int(value)
	return wrapMalformed(field, word, err)
}

func wrapMalformed(field int, word []byte, err error) error {
	if err != nil {
		return fmt.Errorf("%w: field %d is %q", ErrMalformed, field, word)
	}
	return nil
}

// parseUint avoids the string that strconv needs: this runs for every process
// of a job twenty times a second.
func parseUint(word []byte) (uint64, bool) {
	if len(word) == 0 || len(word) > 20 {
		return 0, false
	}
	var value uint64
	for _, c := range word {
		if c < '0' || c > '9' {
			return 0, false
		}
		next := value*10 + uint64(c-'0')
		if value > (1<<64-1)/10 || next < value*10 {
			return 0, false
		}
		value = next
	}
	return value, true
}
