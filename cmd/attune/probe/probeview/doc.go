// SPDX-License-Identifier: Apache-2.0

// Package probeview shows what measure points see, as text for people or as
// JSON lines for programs: what became of each point, what was counted in each
// interval, and single hits with their values. A Printer belongs to one
// goroutine.
package probeview
