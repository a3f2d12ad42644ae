// SPDX-License-Identifier: Apache-2.0

// Package estimate says how much of a resource to ask for, for the next task of a kind,
// from what earlier ones took.
//
// Each [Method] is a model by itself: [Max] and [MinWaste] are those of cctools (Tovar et
// al., "A Job Sizing Strategy for High-Throughput Scientific Workflows", IEEE TPDS 29(2),
// 2018), [Ponder] is that of Lehmann et al. (2024), [Line] and [Offset] are ours. A
// [Chooser] runs several side by side, adds up what each would have cost so far, and goes
// by the cheapest. [Time] and [Cores] are simple quantiles.
//
// All is pure: no clock, no input or output, no chance. Amounts are in one unit that the
// caller keeps to, bytes for what this package has constants for; times are in seconds.
// Nothing here may be used by several goroutines at once. Adding a task to a method that
// fits lines takes time in proportion to the tasks it has, which are [Window] at most.
package estimate
