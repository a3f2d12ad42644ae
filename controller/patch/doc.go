// SPDX-License-Identifier: Apache-2.0

// Package patch prepares entry patches: it decides whether the entry of a
// function can be made to lead somewhere else, and makes the code that is
// needed for it. It reads and writes no process; controller/probe does.
//
// A patch changes one byte: the first of the function's first instruction
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
// The landing jumps to an island, which calls DMLib, executes the first
// instruction that the patch displaced, and jumps back behind it.
//
// Only x86-64 code is understood. Values are immutable, except an [Arena],
// which its owner locks.
package patch
