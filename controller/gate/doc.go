// SPDX-License-Identifier: Apache-2.0

// Package gate is the start gate: a Unix socket at which DMLib, in a process
// that is about to enter main, introduces itself and gets its memory file. The
// messages are declared in dmlib/include/attune/dmlib_gate.h.
//
// A process for which nothing has to be in place before main gets "go" along
// with its memory file: it does not wait for its being attached, and two of the
// four changes between the processes are saved. DMLib finds "go" in the socket
// when it has sent "ready", whichever came first.
//
// A process that starts before its controller is up cannot wait for it, and one in
// which nothing has to be in place before main need not. It makes its memory file
// itself and leaves it at a second socket (Options.Early, Gate.SetEarly), where it
// is taken over if it is still there when somebody looks, every few beats
// (internal/beat).
//
// # Trust
//
// The peer's process, user and group ids are what the kernel says; those in
// its hello are of its own pid namespace and not looked at. Whom Options.Admit
// refuses is cut off before a word is said, and keeps nobody waiting; Options.Refused
// hears of few of them, and the log how many there are. Every message has one size
// and one magic number. A peer that says something else, or
// nothing for two seconds, is cut off and loses what it was given: its memory file
// is marked detached, so that a library which comes late goes inert.
//
// # Locking
//
// Each connection has its own goroutine, of which there are at most
// Options.connections, and few for one process; those at the second socket share
// one, and are bounded alike. Whom Options.Admit refuses gets none: the goroutine that
// accepts refuses them. Serve waits for all of them.
// The callbacks of Options are called from these goroutines, several at a
// time. The only lock guards the set of open connections and is never held
// during a call out of the package.
package gate
