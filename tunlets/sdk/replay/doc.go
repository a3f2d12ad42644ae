// SPDX-License-Identifier: Apache-2.0

// Package replay drives a tunlet with a recording, in the recording's time, and
// writes down what the tunlet decides.
//
// The tunlet gets what it would have got of the recorded session: it is started
// when one of the conditions in its description holds, hears of the processes,
// and gets the samples, aggregates and records of what it asks for, as far as
// the recording has them. Nothing else than the recording and the tunlet's
// answers enters, the time of day included, so that the same tunlet decides the
// same each time.
//
// What is recorded cannot change any more. A proposal that a tunlet of the same
// name made in the recorded session has the fate that it had there; any other
// is told to be advice, for nobody knows what would have become of it.
package replay
