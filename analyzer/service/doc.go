// SPDX-License-Identifier: Apache-2.0

// Package service is the Analyzer of a site: it has many sessions, where package
// analyzer has one.
//
// What is to be observed or tuned are registrations, which lie in the registry.
// Of several services over one registry each registration has one owner, by a
// lease. Controllers dial the owner and say in their hello which registration
// and which execution they serve; the first one to name an execution begins its
// session, an [analyzer.Analyzer]. It ends some time after its last process has,
// and its report is kept. People ask by the SessionService.
//
// A session survives its service: its record in the registry says what was kept,
// and whoever has the registration next goes on with that when the controllers
// come. See docs/design/0026.
//
// Who may do what is decided in allow.go alone. The order of the files: a session
// (hosted.go, run.go), a registration that this Analyzer has (owned.go), the table of
// both; above it claims gets registrations, router begins sessions for controllers,
// and sessions answers people, with orders and finder. Service ties them together.
//
// Locking rule: table.mu guards the maps and what is in an owned, and only the leaf
// locks of a session and of the recorder are taken under it; each session has a
// goroutine of its own that does all that takes time.
package service
