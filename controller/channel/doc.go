// SPDX-License-Identifier: Apache-2.0

// Package channel is the controller's end of the two channels to the Analyzer:
// the event channel carries what happens in the application, the management
// channel carries requests and their answers. They are two connections, so
// that a flood of events never delays a command. The controller dials both.
//
// Client may be used by any number of goroutines. Messages handed to it belong
// to it from then on.
package channel
