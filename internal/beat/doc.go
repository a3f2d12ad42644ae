// SPDX-License-Identifier: Apache-2.0

// Package beat has goroutines wait until the same times. Whoever waits for a few
// milliseconds does not care which ones, but each time that the process wakes costs a
// processor more than what is then done: a thread is woken, often on another
// processor, and with it Go's scheduler and monitor.
//
// It has no state; everything may be called from any goroutine.
package beat
