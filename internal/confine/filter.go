// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Verdict is what the kernel does with a system call.
type Verdict uint32

// All verdicts.
const (
	Allow Verdict = unix.SECCOMP_RET_ALLOW
	// Refuse has the call return EPERM.
	Refuse = Verdict(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	// Lack has the call return ENOSYS, as a kernel does that has no such call: callers go
	// another way then.
	Lack = Verdict(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS))
	// Kill ends the process, where nobody makes the call but who has taken it over.
	Kill Verdict = unix.SECCOMP_RET_KILL_PROCESS
)

// Case is a verdict on calls with certain arguments.
type Case struct {
	// Where has to hold of all arguments that it names; none: of any call.
	Where   []Argument
	Verdict Verdict
}

// Argument holds of a call if the low 32 bits of an argument, which Mask selects, are
// those of Value. All that the kernel takes of the arguments of this package's filters
// are these bits.
type Argument struct {
	Index       int // 0 to 5
	Mask, Value uint32
}

// Is holds where an argument has a value.
func Is(index int, value uint32) Argument { return Argument{index, ^uint32(0), value} }

// Without holds where an argument has none of these bits.
func Without(index int, bits uint32) Argument { return Argument{index, bits, 0} }

// Having holds where an argument has all of these bits.
func Having(index int, bits uint32) Argument { return Argument{index, bits, bits} }

// Filter says what the kernel does with system calls. Those of other architectures, x32
// among them, end the process.
type Filter struct {
	// Calls has the cases of a call, by its number: the first one counts that holds. A
	// call of which none holds is refused.
	Calls map[uint32][]Case
	// Others is the verdict on calls that are not in Calls.
	Others Verdict
}

// Set has the same verdict on calls whatever their arguments.
func (f *Filter) Set(v Verdict, calls ...uint32) {
	for _, call := range calls {
		f.Calls[call] = []Case{{Verdict: v}}
	}
}

// Offsets in struct seccomp_data, which has the processor's order of bytes.
const (
	atCall     = 0
	atArch     = 4
	atArgument = 16 // the low half of the first, 8 bytes each
)

// x32 marks the calls of that architecture, which says that it is x86-64.
const x32 = 0x40000000

// Program is the filter for the kernel, in the order of numbers.
func (f *Filter) Program() ([]bpf.RawInstruction, error) {
	ret := func(v Verdict) bpf.Instruction { return bpf.RetConstant{Val: uint32(v)} }
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: atArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AUDIT_ARCH_X86_64, SkipTrue: 1},
		ret(Kill),
		bpf.LoadAbsolute{Off: atCall, Size: 4},
		// -1 is what a tracer makes of a call that is not to be made.
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: ^uint32(0), SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: x32, SkipTrue: 1},
		ret(Kill),
	}
	for _, call := range slices.Sorted(maps.Keys(f.Calls)) {
		var body []bpf.Instruction
		for _, c := range f.Calls[call] {
			body = append(body, c.code()...)
		}
		body = append(body, ret(Refuse))
		if len(body) > 255 {
			return nil, fmt.Errorf("filter: system call %d has too many cases", call)
		}
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: uint8(len(body))})
		program = append(program, body...)
	}
	return bpf.Assemble(append(program, ret(f.Others)))
}

// code returns the verdict if the case holds, and goes on otherwise.
func (c Case) code() (code []bpf.Instruction) {
	end := []bpf.Instruction{bpf.RetConstant{Val: uint32(c.Verdict)}}
	for _, a := range slices.Backward(c.Where) {
		end = append([]bpf.Instruction{
			bpf.LoadAbsolute{Off: atArgument + 8*uint32(a.Index), Size: 4},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: a.Mask},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: a.Value, SkipTrue: uint8(len(end))},
		}, end...)
	}
	return end
}

// Install puts all threads of this process under the filter, for good, and what they
// execute. It has them get no new privileges, without which the kernel lets only
// CAP_SYS_ADMIN do so.
func (f *Filter) Install() error {
	raw, err := f.Program()
	if err != nil {
		return err
	}
	// struct sock_filter has the layout of bpf.RawInstruction.
	program := unix.SockFprog{Len: uint16(len(raw)), Filter: (*unix.SockFilter)(unsafe.Pointer(unsafe.SliceData(raw)))}
	// Of this thread; the kernel has it of the others with the filter.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	thread, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	switch {
	case errno == unix.EPERM:
		return fmt.Errorf("seccomp filter: %w: what has started this service has to allow seccomp(2), with SystemCallFilter=seccomp in its unit", errno)
	case errno != 0:
		return fmt.Errorf("seccomp filter: %w", errno)
	case thread != 0:
		return errors.New("seccomp filter: a thread has one of its own")
	}
	return nil
}
