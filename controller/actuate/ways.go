// SPDX-License-Identifier: Apache-2.0

package actuate

// Way is a way into a process.
type Way string

// Ways in; docs/reference/actions.md says which actions try which, in which
// order.
const (
	WayMemory  Way = "memory write"
	WayMailbox Way = "DMLib at a safe point"
	WayStopped Way = "ptrace at a safe place"
	WayEntry   Way = "entry patch"
	WayGOT     Way = "GOT slots"
	WaySystem  Way = "system call"
)

// Description is a way in words.
type Description struct {
	Way         Way
	Description string
}

// Ways describes every way.
func Ways() []Description {
	return []Description{
		{WayMemory, "the memory of the process is written from outside (process_vm_writev(2), /proc/PID/mem). Nothing stops."},
		{WayMailbox, "a thread of the process does it at one of DMLib's hooks. Nothing stops; the process must have been started by `attune run` or be attached to."},
		{WayStopped, "one thread is stopped by ptrace(2) where it could itself have called the C library, does it, and goes on as if nothing had been; the others run. Code that takes no lock may interrupt anything. Nothing of Attune stays in the process."},
		{WayEntry, "one byte of a function makes it begin with a jump to code that does what is asked for, and then what the function does. Every call is changed, direct ones inside the object included, but not where the compiler has built the function into a caller. The memory for that code is mapped by DMLib, or else by a stopped thread; it stays when the byte has gone back, for a thread may be in it. Where that byte would make the jump lead to memory in use, or another patch is too near, a whole jump of five bytes is written while all threads are stopped, some milliseconds at most, and none is within the bytes; so it goes back."},
		{WayGOT, "the slots through which all objects call a function of another one are led elsewhere, each in one go, by DMLib or else by a stopped thread."},
		{WaySystem, "a system call on the process, its threads or duplicates of its descriptors, from outside."},
	}
}
