// SPDX-License-Identifier: Apache-2.0

// Package trials finds a good value of a variable of a running program by trying: a [Search]
// is told of progress, interval by interval, proposes values to its [Site], the tunlet, and
// takes them back when they were measured. Only the best stays, if the Analyzer proves it.
//
// What counts progress has to take the variable's value along ([Variable.Global]), so that
// every interval is known to be one with the value or without it, also while the Analyzer
// changes sides to compare. The ratio of both is what tunlets/sdk/search is told.
//
// meter.go parts what is counted by the value in force, and is free of anything else;
// search.go asks what is next; trial.go follows a proposal. No locks: the SDK makes one call
// at a time. tunlets/searching shows how to use it.
package trials
