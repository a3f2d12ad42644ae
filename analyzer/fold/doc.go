// SPDX-License-Identifier: Apache-2.0

// Package fold makes what people are told of a session from its frames: an
// [Account] adds them up, and the report, the live view, the summary and what was
// learnt are read from it; a [Timeline] turns each into a line. Nothing else goes in,
// so that the frames of a recording give the report that the session gave.
//
// A fold belongs to the goroutine that feeds it, which for a session's is its loop:
// whoever reads one while the session runs does so in session.Session.View. It keeps
// nothing of a frame but texts and numbers. All that grows is bounded, and what has
// no place is counted in the report.
package fold
