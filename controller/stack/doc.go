// SPDX-License-Identifier: Apache-2.0

// Package stack is the code of a process, by which the kernel's probes walk its stacks
// and by which their functions get names.
//
// A [Space] is made while the process runs and keeps its files open, so that it still
// serves when the process has ended. It may be used from any goroutine.
package stack
