// SPDX-License-Identifier: Apache-2.0

// Package perprocess is the frame of a tunlet that judges each process for itself, by its
// signals: the author writes a [Problem], which has no state, and [New] makes a tunlet of
// it. It wants samples of a process from the first level of a condition of waking on. While
// they come it reports the objective; when the symptom has lasted and there is a baseline it
// proposes. What was undone, refused or failed is proposed again after a pause, as often as
// Description.MaxTries says. After what was kept it proposes nothing more, and goes on to
// report the objective from time to time (see [Looks]), also when it was started again since.
//
// A tunlet that needs more than that, such as measure points or a state machine of its own,
// keeps what it knows of each process in [Watches], and has [Looks] for what was kept.
//
// No locks: the SDK makes one call at a time.
package perprocess
