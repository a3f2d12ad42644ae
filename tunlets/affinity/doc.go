// SPDX-License-Identifier: Apache-2.0

// Package affinity is the tunlet for threads that may run on the wrong CPUs: bound
// to CPUs that others want as well while they could be given more, as two jobs of
// mpirun are that each bind their first rank to the first core; and pairs that
// hand something to and fro between two cores, and spend their time on waking each
// other.
//
// Of both, the signals of a process only give reason to look at its threads one by
// one, and at its pipes and sockets, for a bounded time (node.go); what follows
// from them is in model.go for the bound and in pair.go for the pairs.
// docs/tunlets/affinity.md has the reasons and the figures.
package affinity
