// SPDX-License-Identifier: Apache-2.0

// Package core decides which proposed changes are applied, kept and undone.
//
// It is a pure state machine in the manner of etcd's raft: events and the time
// go in through [Core.Step], commands come out. It has no clock, no I/O, no
// goroutine and no randomness, so that the same script of events always gives
// the same transcript (see testdata). The session around it executes the
// commands and feeds their results back as events.
//
// A proposal's way:
//
//	Propose -> refused | advised | waiting (for a baseline and its turn)
//	waiting -> refused (no baseline) | applying -> judging
//	judging -> kept -> (regressed, withdrawn) undoing
//	applying, judging -> undoing -> undone | failed
//	judging -> ended, when its processes end before the verdict
//
// Rules: one owner per knob and process; a proposal's changes are applied all
// or nothing; at most one experiment at a time touches a process, because two
// would be measured as one; a change stays only if the objective's samples
// with it are better than those without it, taken over intervals of the same
// length, by a margin and significantly, and a tunlet may veto but never overrule
// a measurement, nor replace one; a tunlet that died leaves no unverified change
// behind.
//
// A large gain that the tunlet's model predicted is kept after one comparison of
// before and after (Mann-Whitney U, golang.org/x/perf/benchmath). Anything else is
// judged in turns: the change is taken back and made again, until it is certain
// that the objective follows it (see turns and docs/design/0030). A kept change
// is watched, and judged in turns again when it seems to have become worse; to be
// undone it has to be shown to do harm.
//
// Of the same change in several processes of one program, each with an objective of
// its own, one is tried; the others take over its verdict (see kin and
// docs/design/0040).
//
// Times are durations since the start of the session. A Core is not safe for
// use by several goroutines: its owner's loop calls it.
package core
