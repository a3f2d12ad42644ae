// SPDX-License-Identifier: Apache-2.0

// Package analyzer wires one Analyzer: the session that routes and decides, the
// host of the tunlets, and, for a command that has one session only, the gRPC
// server to which Application Controllers connect. The package service serves
// many.
//
// Life: [New], [Analyzer.Start], [Analyzer.Serve] (in a goroutine of the
// caller's), [Analyzer.Finish] or at least [Analyzer.Stop]. A report can be had
// at any moment. All methods are safe for use by several goroutines; the
// package's own state is behind leaf locks, all decisions are made in the
// session's loop (see the package session).
package analyzer
