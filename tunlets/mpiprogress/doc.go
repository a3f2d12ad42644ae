// SPDX-License-Identifier: Apache-2.0

// Package mpiprogress is the tunlet against MPI ranks that spin while there
// are more of them than CPUs: a rank that waits for a message burns the CPU
// that the sender needs. Open MPI has a variable that makes a waiting rank
// yield; it is set in every rank of the node, and set back when there is room
// again, since yielding costs a few per cent where nobody needs the CPU.
//
// A session is one job. On several nodes its ranks hold each other up: as long
// as those of one node spin, a change on another brings nothing. So all nodes
// that have the trouble are changed by one proposal and judged together; a node
// waits a short time for others that may have it too. There is room again on
// each node for itself.
//
// The objective, MPI calls per second of all ranks of the node, or of all nodes
// whose calls are counted, is measured as soon as there are more ranks than
// CPUs, so that there is a baseline when the trouble is recognised. Before that
// the ranks are left alone.
//
// model.go is the model and free of state; rank.go lists what is counted and
// follows one rank; node.go and propose.go know about the ranks of one node; job.go
// decides for all nodes, and series.go is what they are judged by; tunlet.go connects
// them to the Dynamic Tunlet API. No locks: the SDK makes one call at a time.
package mpiprogress
