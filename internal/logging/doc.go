// SPDX-License-Identifier: Apache-2.0

// Package logging builds the logger of a run. The terminal belongs to the
// program, so nothing is logged there: everything at or above a level goes to
// the log file where one was asked for, and warnings and errors are collected
// for the notes of the report.
//
// Logger and Collector are safe for concurrent use; one mutex guards the
// collected lines.
package logging
