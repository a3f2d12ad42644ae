// SPDX-License-Identifier: Apache-2.0

// Package inject has what is done in a process that is running already, one type per
// operation: an injection brings DMLib in, an execution has code called, where a thread
// stands well or comes by itself (ambush), a meeting has a visitor look at threads at the
// entries of functions, and a rewriting changes code. Which threads may be stopped and
// borrowed for that, and how they are let go, is up to package tracer below.
//
// To follow an injection from the request to where DMLib answers, read inject.go,
// tracer/search_amd64.go (which thread), call_amd64.go and tracer/borrowed_amd64.go (what
// it is made to do), dmlib/entry/start_x86_64.S and entry.c (which it executes), talk.go
// (our side of the conversation), and dmlib/src/attach.c.
//
// One thread of the process is stopped at a place where it could
// itself have called pthread_create(3), is made to call it, and is put back. The thread
// that it has started (dmlib/entry) loads DMLib and attaches while the program runs, blocks
// all signals but those of faults, has a descriptor table of its own, and ends. No
// other thread is stopped, but for a look at whether it is at a safe place.
//
// In a program that never had a second thread the borrowed one does all of it:
// with a second one the C library would begin to take its locks, for good. So
// it does where a thread cannot be started (a limit), or where somebody counts
// them (sanitizers).
//
// A place is safe if the thread blocks in a system call that holds nothing, or
// runs outside the C library; if no frame next to it is the allocator's or the
// dynamic loader's; if it owns none of the loader's locks, which tell their
// owner; and if it is not in a signal handler that interrupted the C library.
//
// No byte of the process' own code, data or stacks is changed. What the call
// needs lies in one mapping that is removed afterwards. If the controller is killed
// in between, the thread finishes the call and restores itself; what was started ends
// when it hears nothing for two seconds.
//
// The two sides talk through words in that mapping. The process makes the file
// that is shared with DMLib, and one for the library itself where it belongs to
// another user or does not see our path (mount namespaces); we fill them.
//
// A process under seccomp filters is entered if root can read them and they
// allow every system call that is needed. Refused are processes that are
// stopped, traced, static, under another controller that lives, in vfork(2), or
// that have an allocator of their own in the program itself.
//
// A lock of the program that the borrowed thread holds is never waited for by
// the call, but where it does all of the work itself. A process that forks
// while the library is being loaded gives the child the loader's lock, held:
// as with every dlopen in a program of several threads.
//
// Functions may be called from any goroutine; a process is entered by one at a
// time, of all controllers of the machine.
package inject
