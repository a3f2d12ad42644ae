// SPDX-License-Identifier: Apache-2.0

// Package inject brings DMLib into a process that is running already.
//
// One thread of the process is stopped by ptrace(2) at a place where it could
// itself have called dlopen(3), is made to call it and DMLib's
// attune_dm_attach, and gets its registers, vector state and signal mask back.
// The other threads run on.
//
// A place is safe if the thread blocks in a system call that holds nothing, or
// runs outside the C library, and no frame on its stack returns into the
// dynamic loader, the allocator, or a function of the C library that holds one
// of their locks. Stacks are searched for return addresses, not unwound: a
// stale one refuses a place that was safe, and never the other way round. A
// thread that is not at a safe place is let go at once and looked at again
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
