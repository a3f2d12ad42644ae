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

// Route is the ways that an action tries.
type Route struct {
	// Action as policies name it.
	Action string
	// What is changed, and the Command that does so.
	What, Command string
	// Ways in the order in which they are tried.
	Ways []Way
	// Remark says when the next one is tried, and what is not covered.
	Remark string
	// Undo says what undoing does.
	Undo string
}

// Routes returns the ways of every action; docs/reference/actions.md is made
// from it.
func Routes() []Route {
	return []Route{
		{
			"set", "variable", "attune tune set", []Way{WayMemory},
			"Exported, static and thread-local variables of 1, 2, 4 or 8 bytes. The size is checked against the symbol table, the type against debug information where there is some. Constants are refused. Thread-local ones need glibc; threads that start later begin with the initial value.",
			"the old value, in the threads that still live, unless somebody else has changed it since",
		},
		{
			"call", "call once", "attune tune call", callWays,
			"The second where DMLib is not in the process, or no thread came to a hook in time, unless a hook was asked for; at the exit of a function (`--after`), and without DMLib or where the entry (`--at`) cannot be patched, by a breakpoint in the debug registers of each thread, or a uprobe where they do not work (with root; not in code that was changed). Up to six integers, addresses, doubles and texts; a float, a long double or a structure cannot be passed.",
			"impossible",
		},
		{
			"load", "load library", "attune tune load", loadWays,
			"The second, at calls of read and write only, where the kernel allows no ptrace(2), or no thread stood at a safe place in time: the loader itself calls malloc.",
			"nothing, or dlclose(3) where that was asked for: what constructors did stays",
		},
		{
			"replace", "replace function", "attune tune replace", []Way{WayEntry, WayGOT},
			"The second where the entry cannot be patched, or an indirect function (IFUNC) has chosen code outside of its object, or that another one may have chosen as well (memcpy and memmove): then calls inside its object, through pointers taken before, and of objects that are loaded later are not changed, and the answer says so. Where debug information has both signatures they must agree, unless forced.",
			"the function's first byte (or bytes), or the slots; refused if somebody else has changed them since",
		},
		{
			"remove", "remove call", "attune tune remove", []Way{WayEntry},
			"All calls, or those from one function; a structure or long double cannot be returned. Of an indirect function what it has chosen is changed, here and below, unless another one may have chosen it as well.",
			"the function's first byte (or bytes)",
		},
		{
			"param", "change parameter", "attune tune param", []Way{WayEntry},
			"One of the first six integers and addresses, or of the doubles and floats. The old value that may be required is compared in the size of the parameter where debug information has it, else in 8 bytes. Refused where the function loops back to its first instruction.",
			"the function's first byte (or bytes)",
		},
		{
			"insert", "insert call", "attune tune insert", []Way{WayEntry},
			"At the entry, or at the exits where all of them can be patched. Refused at the entry where the function loops back to it. The thread may hold any lock: what is called must not need one.",
			"the function's first byte (or bytes), and its exits",
		},
		{
			"setting", "named setting", "attune tune PID NAME=VALUE", []Way{WayMailbox, WayMemory, WayStopped},
			"Variables are written; what takes a call is done by DMLib, and without it by a stopped thread; stdio streams and control variables of MPI by stopped threads only, the latter in all ranks before the same call. See docs/reference/settings.md.",
			"the old value, also after a controller that died",
		},
		{
			"system", "what the operating system keeps", "attune tune NAME=VALUE", []Way{WaySystem},
			"See docs/reference/knobs.md.", "the old value, as described there",
		},
	}
}

// callWays: a hook of DMLib costs no stop.
var callWays = []Way{WayMailbox, WayStopped}

// loadWays: the loader calls malloc, and so the allocator's hooks, in the
// middle of loading something else; whether a thread is in there can be seen
// when it is stopped.
var loadWays = []Way{WayStopped, WayMailbox}
