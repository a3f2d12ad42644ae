// SPDX-License-Identifier: Apache-2.0

// Package session runs one tuning session: it merges what askers want and tells each
// controller its part, merges what controllers report, routes it to the tunlets that
// asked for it, feeds the decision core, and carries out what the core commands.
//
// All that happens it gives to its sinks, one RecordingFrame (proto/attune/v1/recording.proto) after the
// other and in its own handles of processes and indexes of points. What people are
// told (report, live view, timeline, recordings) is made from these frames alone, see
// package fold: the session keeps nothing for them.
//
// Locking rule: all state belongs to the goroutine in [Session.Run]; everybody
// else posts functions to its bounded inbox. The loop never waits for anybody:
// sending to a controller or a tunlet either succeeds at once or counts as that
// party's failure. Each tunlet has a worker goroutine of its own that makes the
// calls, one at a time, from a bounded queue (package calls); it may wait for the
// inbox, never the other way round. Of what was measured, the inbox and the queues
// drop what does not fit, and count it; news about processes, points and proposals
// are never dropped, and a tunlet that does not keep up with them is killed.
//
// The files have an order. A file uses those below it; those above it, it calls only
// by functions that [New] gives it:
//
//	session                               the loop and its ticks
//	route, connections                    what comes in by the channels of controllers
//	population                            who is told of processes, and in which order
//	tunlets, sleep, knowledge, inherit    who runs, who sleeps, what is taken over
//	decide, pace                          the core and its requests; how often to sample
//	askers, points, want                  what is wanted, merged for each controller
//	process, controller                   who there is
//	losses, frames, inbox, clock          the way out and the way in
//
// A tunlet that sleeps has no process yet: the session watches for what wakes it
// in the samples, see [Session.TunletAsleep], and keeps those that come until it
// is there.
//
// Tunlets live by the session's clock: the Unix time of its start, and what has passed
// since. Times of what was measured are taken to that where they come in, so that neither
// the session's machine nor a node whose time of day is set makes tunlets wait until then,
// and what a node measures whose clock is behind is not taken for old.
//
// A session serves several controllers. Handles of processes are unique per
// controller connection only, so the session gives out its own and translates
// in both directions.
package session
