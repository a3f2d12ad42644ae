// SPDX-License-Identifier: Apache-2.0

// Package meter takes out of members what is measured in them and hands it on:
// records of rings and of the kernel's probes, aggregates, signals, and details
// beside them. There is one clock of what is read periodically (sampling), one
// budget of what measure points may cost (budgeting), and one account of what was
// received and lost (account).
//
// Samples of a round leave before the aggregates of that round.
//
// Whoever drains rings never waits for the Analyzer. Lock order: the mutex of
// aggregates, which is held while they wait for room, then that of records, which is
// never held while anybody waits, then those of the Placer's sets and of members.
package meter
