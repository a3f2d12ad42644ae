// SPDX-License-Identifier: Apache-2.0

// Package trial says whether an objective is better with a change than without it.
//
// A [Trial] has stages. First it compares before and after: what is plain, and was
// predicted, is decided by that ([Trial.Look]). Anything else it compares in turns, in
// which the change is taken back and made again. A change that stays it watches
// ([Trial.Watch]), and compares in turns again where that seems to have become worse.
//
// It knows samples only: it changes nothing and asks nobody, and returns what is to be
// done as a [Ruling]. It has no clock; times are durations since the start of the
// session. Nothing here is safe for use by several goroutines.
//
// From the lowest file: history (samples, and how they are made comparable), stats, rank
// and predict (the comparisons), turns, decide (what turns prove), trial (before and
// after), verdict (what follows from one).
package trial
