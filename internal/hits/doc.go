// SPDX-License-Identifier: Apache-2.0

// Package hits reads what measure points deliver, records and aggregates, for
// whoever shows it to people: what the protocol says of their bits becomes
// values, sums and words. Nothing in it is for concurrent use.
package hits
