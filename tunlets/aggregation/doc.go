// SPDX-License-Identifier: Apache-2.0

// Package aggregation is the tunlet for programs that send many small messages and
// can join several into one: they have a variable that says how many. Its name is an
// option, without which the tunlet is not started.
//
// model.go is the model and free of state; options.go says how the program is
// described; tunlet.go joins both in the frame of perprocess. All that it needs is what the
// kernel counts anyway, so nothing is put into the program before the change. No
// locks: the SDK makes one call at a time.
package aggregation
