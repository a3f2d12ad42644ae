// SPDX-License-Identifier: Apache-2.0

// Package ompspin is the tunlet against OpenMP teams that spin against each other:
// each fits on the CPUs for itself, all together do not, and a thread that waits
// for its team burns the CPU that another team's thread needs. Threads that wait
// are made to sleep at once. A team that is alone spins again: then that is up to
// fifteen times faster.
//
// model.go is the model and free of state; team.go follows one process; node.go
// decides for the teams of one node, which are changed and judged together;
// tunlet.go connects them to the Dynamic Tunlet API. No locks: the SDK makes one
// call at a time.
package ompspin
