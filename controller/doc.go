// SPDX-License-Identifier: Apache-2.0

// Package controller wires one Application Controller: it lets DMLib in at the
// start gate, follows the processes of a job, places measure points, drains
// events, samples signals, executes tuning actions, and carries all of it to
// and from the Analyzer. The same controller serves `attune run`, where it
// lives beside the Analyzer, and the node daemon.
//
// New constructs everything, Start runs it, Stop gives back what was changed
// and ends it. What it wires is in rooms of their own:
//
//	member  a process in its life, and who keeps something about it
//	admit   how a process comes in, and goes
//	meter   what is measured in members, within one budget and with one account
//	change  what the Analyzer asks for, and for how long it stays without word
//	link    what the Analyzer is told, and what is lost on the way
//
// member knows none of the others; link, meter and change know member; admit knows
// link and member. What else they need of one another is handed in here.
package controller
