// SPDX-License-Identifier: Apache-2.0

// Package workers is the tunlet that chooses the number of workers of a
// master/worker program: too few leave CPUs idle, too many cost the master more
// messages than they save work.
//
// model.go is Morajko's model and free of state; tunlet.go connects it to
// package masterworker, which measures the program.
package workers
