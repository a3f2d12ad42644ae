// SPDX-License-Identifier: Apache-2.0

// Package report says what a session saw, changed, gained and lost: as one JSON
// document ([Report], schema in docs/reference/report.schema.json), as a few
// lines for people ([Report.WriteText]), as JSON lines while it happens
// ([Timeline]), and as the compact [Snapshot] behind the live view.
//
// Reports, snapshots and entries are plain data: whoever made one may read it
// from several goroutines as long as nobody writes. A Timeline is safe for use
// by several goroutines.
package report
