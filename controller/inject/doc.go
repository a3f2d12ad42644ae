// SPDX-License-Identifier: Apache-2.0

// Package inject brings DMLib into a process that is running already.
//
// One thread of the process is stopped by ptrace(2) at a place where it could
// itself have called dlopen(3), is made to call it and DMLib's
// attune_dm_attach, and gets its registers, vector state and signal mask back.
// The other threads run on.
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
// are blocked in the thread meanwhile, so the kernel keeps them, in their
// order, for the moment when the thread is back. If the controller is killed
// in between, the thread finishes the call and restores itself by
// rt_sigreturn(2); the mapping stays, and a nanosleep or futex with a timeout
// that it was in returns EINTR.
//
// Not covered: a lock of the program that the thread holds and that a
// constructor, running in another thread, waits for (the call then ends at its
// timeout and completes by itself later); allocators that are linked into the
// program itself, which is refused; processes of other mount namespaces, other
// users, and under seccomp, which are refused.
//
// Functions may be called from any goroutine; a process is injected into by
// one at a time.
package inject
