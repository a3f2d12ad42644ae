// SPDX-License-Identifier: Apache-2.0

// Package masterworker is what tunlets for programs have in common in which a
// master hands work to workers, round by round, and which have a variable that
// says how: how many workers there are, or how much each gets at a time.
//
// Such a program has to say what its parts are: options name the variable and the three
// functions of a [Program]. These are measured in all its processes and threads, whatever
// they talk over; the tunlet's model says from that which value would be better. The
// objective is rounds per second, so that nothing is kept but what makes the program faster.
//
// options.go has the options; measured.go adds up what was measured; watch.go
// places the measure points; tunlet.go connects it all to the Dynamic Tunlet
// API, and kept.go follows what becomes of proposals. No locks: the SDK makes one
// call at a time.
package masterworker
