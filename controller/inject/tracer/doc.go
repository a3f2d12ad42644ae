// SPDX-License-Identifier: Apache-2.0

// Package tracer stops threads of a running process by ptrace(2) and lets them go
// on. All that enters processes does it by this package, so that there is one policy.
// It knows threads, registers, signals and system calls, and nothing of what is done
// with a thread that stands.
//
// Who may be stopped: a thread of a process that is not stopped, traced, ending or in
// vfork(2) ([Check]), and that is still the program that was asked for when it stands.
// Who may be borrowed, that is, execute something for the caller: one that stands in a
// system call which holds nothing, or in none, outside restartable sequences, and whose
// seccomp filters allow the system calls that are needed.
//
// Who is not stopped: a thread that sleeps in a system call which may have done a part of
// its work, and would return that part after any stop (recv(2) with MSG_WAITALL, a blocking
// write(2) but of a page to a pipe). The same calls are cut short nonetheless where the
// thread runs when it is looked at, between two sleeps, and where a signal that the program
// discards comes to a thread that is traced.
//
// How a thread is let go: with the signal that it was about to take, and as if nobody
// had looked. A system call that failed only because of the stop (EINTR) is made again,
// a signal that the program discards interrupts nothing, and the signal of a breakpoint
// of ours is taken off before, because it would kill a thread without a tracer. A
// thread that did not stop in time is let go when it stops.
//
// How a thread is borrowed: it gets its registers, vector state and signal mask back.
// All signals but SIGURG, which marks the end of what it executes, and those of faults
// are blocked meanwhile, so that the kernel keeps them in their order; those that came
// nonetheless are sent again. The signal of setuid(2) is passed on where the code has
// unblocked it. No thread is stepped: a trap flag that outlasts the tracer
// kills.
//
// What happens when the tracer is killed: the kernel lets go of all threads, and takes
// breakpoints away. A borrowed thread restores itself by rt_sigreturn(2), from a frame
// below its stack (the lifeline) or in the memory that it executes; a nanosleep or futex
// with a timeout that it was in returns EINTR. A thread on a stack of unknown bounds has
// no lifeline, and is borrowed if there is no other; then no system call that it makes is
// given up while the tracer lives, however late it is.
//
// The kernel knows OS threads as tracers, so [Run] gives a [Tracer] one of its own,
// which ends afterwards: whatever is still held then goes on. A Tracer, and what is made
// with it, is for the goroutine that Run calls. [Borrower] and [Search] may be used by
// one Run after the other.
package tracer
