// SPDX-License-Identifier: Apache-2.0

// Package report makes a report of an archive: for each category how what its tasks took
// is distributed, how it went over time, what was asked for in vain, which tasks are unlike
// the others, and what to ask for the next time. It is a page for a browser, in one file
// that needs nothing else and runs nothing, or a text for a terminal.
//
// A Report is a plain value, which several goroutines may read.
package report
