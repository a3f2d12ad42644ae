// SPDX-License-Identifier: Apache-2.0

// Package breakpoint stops threads of a process where they come to an address, by the
// debug registers or, where a machine has none that work, by probes of the kernel. No
// byte of the process' memory is written by us. It is below the operations of
// controller/inject, and beside the policy of controller/inject/tracer, which waits for
// the threads.
package breakpoint

import "github.com/attune-hpc/attune/controller/inject/tracer"

// Breakpoint stops threads that are traced, and only those, where they come to an
// address: it has the kernel send them SIGTRAP. It goes with this process. Its methods
// are for the OS thread that traces.
type Breakpoint interface {
	tracer.Breakpoint
	// AtExit says that threads stop at the exit of the function that begins there,
	// of their outermost call, rather than at the address itself.
	AtExit() bool
	// Reached says whether a thread that it has stopped is where it was meant to
	// be, with a stack pointer; 0: any.
	Reached(tid int, stack uint64) bool
	// Pause stops nobody until it is told to go on, if the breakpoint could outlast
	// this process for a moment: a thread that hits it then is killed.
	Pause(on bool)
	// Disable stops nobody any more. It takes no time.
	Disable()
	// Close takes the breakpoint away, which may take time.
	Close() error
}
