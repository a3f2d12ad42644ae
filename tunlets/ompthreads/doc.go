// SPDX-License-Identifier: Apache-2.0

// Package ompthreads is the tunlet against OpenMP teams with more threads than
// CPUs: at the beginning and the end of each parallel region all threads have to
// have had a turn, so that the time goes into switching between them. Their
// number is made that of the CPUs.
//
// model.go is the model and free of state; team.go follows one process; node.go
// decides for the processes of one node, which share its CPUs and are changed and
// judged together; tunlet.go connects them to the Dynamic Tunlet API. No locks:
// the SDK makes one call at a time.
package ompthreads
