// SPDX-License-Identifier: Apache-2.0

// Package mpi changes control variables of MPI (MPI_T), in all ranks of a job before
// one and the same call, or in none: ranks are brought to the entry of a collective
// operation, look at the variable there, and take each step together ([meeting]).
package mpi
