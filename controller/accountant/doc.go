// SPDX-License-Identifier: Apache-2.0

// Package accountant makes the account of a command: what it and all its
// processes took.
//
// A source follows the processes. The kernel's (with root) knows every thread's
// total when the thread is done with; without root, what was reaped tells. A
// sampler looks at the processes that live, for what has no total: memory of all
// at one time, and the time series.
//
// An Accountant goes one way: New, Fork and Ended by package launch, Begin, End,
// Close. These are for one goroutine.
package accountant
