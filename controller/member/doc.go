// SPDX-License-Identifier: Apache-2.0

// Package member has the processes of a job that one controller looks after, each
// in its life. A [Member] is one image of a process: an exec ends it and begins
// another. A [Set] has those that live.
//
// The life of a member:
//
//	                 LeaveAlone
//	      Seen ──────────────────────▶ Foreign
//	      │ │ │
//	      │ │ └── AdmitOutside(late) ─▶ Awaiting ──┐
//	      │ │                            │         │
//	      │ │                      GiveUpLibrary   │
//	      │ │                            ▼         │
//	      │ └── AdmitOutside ────────▶ Outside     │
//	      │                              │         │
//	  Register                        Register  Register
//	      ▼                              │         │
//	  Registered ◀───────────────────────┴─────────┘
//	      │
//	AdmitInside
//	      ▼
//	    Inside           from each of them, End leads to Gone
//
// Beside its life, a member has a standing with the Analyzer: Unheard, until its
// start is told for the first time; Told, while an Analyzer knows of it; Hushed,
// when the connection is lost, until the next Analyzer is told.
//
// Whoever keeps something about members does so in a [Keep], which goes with the
// member, or lets go of it in a hook of the set, see [Set.OnLeave]. Nobody has a map
// of processes of its own.
//
// All methods may be called from any goroutine. The mutex of a Member itself, see
// controller/actuate, is held while something is changed in the process and comes
// before all others here, which are leaves.
package member
