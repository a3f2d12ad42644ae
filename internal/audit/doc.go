// SPDX-License-Identifier: Apache-2.0

// Package audit keeps a log of who asked a service for what, and of what it
// answered: one JSON object per line, only ever appended to.
// docs/reference/audit.md has its fields.
//
// Lines are collected and made durable together, by one goroutine: whoever
// must not answer before its line is on disk calls [Log.Sync], as the gRPC
// interceptors do. Nothing in here fails a request: where the disk is full or
// the file cannot be opened, lines wait, bounded, and then are lost; how many is
// told in the log itself when it can be written again, and meanwhile by
// [Log.Trouble].
//
// The file may be moved or removed at any time (logrotate): the next lines go to
// a new one. A line that a crash has cut off stays as it is, on a line of its
// own. Numbers of lines are without gaps, so that what is missing shows.
package audit
