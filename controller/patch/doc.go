// SPDX-License-Identifier: Apache-2.0

// Package patch prepares patches of functions: it decides whether their entry
// and their exits can be made to lead somewhere else, and makes the code that is
// needed for it. It reads and writes no process; controller/sites does. What the code
// of functions does it knows from its package flow.
//
// A patch changes one byte, if it can: the first of the function's first instruction
// becomes the opcode of a jump (e9), whose four displacement bytes are those
// that stand behind it anyway. Where the jump leads, the landing, is therefore
// given by the function's own code, and the process must have, or get, memory
// there. One byte is changed in one go for every thread, and a thread that
// stands behind it finds the instructions that it would have found: nothing
// has to be stopped, and a branch into the prologue, a saved program counter in
// a signal frame or a function shorter than a jump need no attention. (The
// trick is "instruction punning": Chamith, Svensson, Dalessandro and Newton,
// PLDI 2017; see docs/design.)
//
// An instruction that is a jump already gets another byte in its distance
// instead.
//
// Where there can be no memory at the landing, or another patch is too near, a
// whole jump is written ([Wide], [WideExit]), which leads wherever there is room.
// Its five bytes are changed while all threads are stopped, none of them within;
// nothing else may lead there ([flow.Surroundings]).
//
// The landing leads, through a pointer, to a [Program], which calls DMLib for
// each point that is measured, does what each [Step] says, executes the instruction
// that the patch displaced, and jumps back behind it. It changes by one byte of
// the pointer.
//
// Only x86-64 code is understood. Values are immutable, except an [Arena] and a
// [Window], which their owner locks.
package patch
