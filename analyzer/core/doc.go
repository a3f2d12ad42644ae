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
// that the objective follows it (see package trial and docs/design/0030). A kept
// change is watched, and judged in turns again when it seems to have become worse; to
// be undone it has to be shown to do harm.
//
// Of the same change in several processes of one program, each with an objective of
// its own, one is tried; the others take over its verdict (see siblings and
// docs/design/0040).
//
// Each stage of that way is a type, with what it needs of those below it:
//
//	Core         tells the others what happened, and what time it is
//	withdrawals  what tunlets withdraw
//	admission    who is admitted, with rivalry (who makes room) and canaries
//	outcomes     what controllers report of changes
//	applier      whose turn it is, and has its baseline
//	judge        carries out what trials rule
//	undoer       takes back what is in force
//	endings      how proposals end
//
// They share what is known, each part of which is kept right by one type: the proposals
// on their way (line) and those that are remembered (archive), requests without an
// answer, owners of knobs, restraints, siblings, processes, tunlets, knowledge, and the
// transcript of a step, which has the time. Nothing calls upwards but the end of a
// proposal, which may mean something to others: Core.aftermath.
//
// Times are durations since the start of the session; what a session slept through takes no
// time of what waits for something. A Core is not safe for
// use by several goroutines: its owner's loop calls it.
package core
