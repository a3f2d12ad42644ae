// SPDX-License-Identifier: Apache-2.0

// Package analyzer wires one Analyzer: the gRPC services to which Application
// Controllers connect (event channel and management channel), the session that
// routes and decides, and the host of the tunlets.
//
// Life: [New], [Analyzer.Start], [Analyzer.Serve] (in a goroutine of the
// caller's), [Analyzer.Finish] or at least [Analyzer.Stop]. A report can be had
// at any moment. All methods are safe for use by several goroutines; the
// package's own state is behind leaf locks, all decisions are made in the
// session's loop (see the package session).
package analyzer
