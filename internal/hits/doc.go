// SPDX-License-Identifier: Apache-2.0

// Package hits reads what measure points deliver, and what became of them, for
// whoever shows it to people: aggregates become sums, states words. Nothing in it
// is for concurrent use.
package hits
