// SPDX-License-Identifier: Apache-2.0

// Package inject brings DMLib into a process that is running already.
//
// One thread of the process is stopped by ptrace(2) at a place where it could
// itself have called pthread_create(3), is made to call it, and gets its
// registers, vector state and signal mask back. The thread that it has started
// (dmlib/entry) loads DMLib and attaches while the program runs, blocks all
// signals but those of faults, has a descriptor table of its own, and ends. No
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
// A thread that is not at a safe place is let go at once and looked at again
// later.
//
// No byte of the process' own code, data or stacks is changed. What the call
// needs lies in one mapping that is removed afterwards. All signals but SIGURG
// and those of faults are blocked in the thread meanwhile, so the kernel keeps them, in their
// order, for the moment when the thread is back. If the controller is killed
// in between, the thread finishes the call and restores itself by
// rt_sigreturn(2), and a nanosleep or futex with a timeout that it was in
// returns EINTR; what was started ends when it hears nothing for two seconds.
// Where the thread is not yet in the mapping, or not any more, the frame for
// that lies below its stack meanwhile, where the kernel would put one; a thread
// on a stack of unknown bounds is borrowed without, if there is no other.
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
