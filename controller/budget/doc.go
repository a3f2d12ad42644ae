// SPDX-License-Identifier: Apache-2.0

// Package budget decides how much of its measure points a process can afford.
//
// In each round it is told what a process did: its CPU time, and for each point
// the hits and what one costs at each level of delivery. Where the points take
// more than their share, the most expensive ones get less: each hit, one in
// some, aggregates, nothing. What got less gets more again when that has been
// affordable for a while, which doubles each time it was not. A point that is
// off is tried again in the same way, for its hits are not known.
//
// A Ledger has no clock and does no I/O: time comes with the rounds. It is for
// one goroutine.
package budget
