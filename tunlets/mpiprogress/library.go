// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import "github.com/attune-hpc/attune/tunlets/sdk"

// library is the MPI implementation that a process has mapped.
type library uint8

const (
	noMPI    library = iota
	openMPI          // has a variable
	mpichUCX         // MPICH or a relative, over UCX: its progress function can be made to yield
	mpich            // MPICH or a relative, over something else: no knob
	otherMPI         // an MPI library whose progress engine is not known
)

// Patterns of the MPI libraries.
const (
	libmpich = "libmpich*.so*"
	libmpi   = "libmpi.so*"    // Open MPI's, or that of MPICH's common ABI
	libABI   = "libmpi.so.12*" // the name of MPICH's common ABI
	libucp   = "libucp.so*"
)

// Names of what is changed.
const (
	knobOpenMPI = "openmpi.yield_when_idle"
	knobMPICH   = "mpich.yield_in_progress"
)

// libraries are the objects that make a process a rank.
func libraries() []string { return []string{libmpich, libmpi} }

// knobs lists all that there are.
func knobs() []sdk.Knob {
	return []sdk.Knob{
		{Name: knobOpenMPI, Action: openMPI.yields(), Description: "a rank that waits in an MPI call yields its CPU (opal_progress_yield_when_idle of libopen-pal)"},
		{Name: knobMPICH, Action: mpichUCX.yields(), Description: "a rank that looks for messages yields its CPU first (sched_yield at the entry of ucp_worker_progress of libucp)"},
	}
}

// libraryOf tells by the mapped objects. A rank in the environment alone is
// not enough: launchers and wrapper scripts have it too, and Open MPI's own
// daemons map libopen-pal without being ranks.
func libraryOf(p sdk.Process) library {
	switch {
	case p.Maps(libmpich), p.Maps(libABI):
		if p.Maps(libucp) {
			return mpichUCX
		}
		return mpich
	case !p.Maps(libmpi):
		return noMPI
	case p.Maps("libopen-pal.so*"):
		return openMPI
	}
	return otherMPI
}

// hasKnob says that ranks can be made to yield.
func (l library) hasKnob() bool { return l == openMPI || l == mpichUCX }

// objectOf is the pattern of the library that has the MPI calls.
func objectOf(p sdk.Process) string {
	if p.Maps(libmpich) {
		return libmpich
	}
	return libmpi
}

// change makes a rank of the library yield; only where hasKnob.
//
// MPICH has no setting for it. But whatever a rank waits for, messages through
// shared memory included, it calls ucp_worker_progress in every turn of its loop.
// That function is made to call sched_yield first, which is a system call that
// takes no lock. It does so in turns that find something, too. That is no loss
// where it is done: with more ranks than CPUs, who has just been served is not who
// holds the others up. Measured with mpi_exchange on 2 CPUs, it/s: 4 ranks 40,
// 850 where only turns without result yield, and 5,900 so; 8 ranks 15, 70 and 250.
func (l library) change(p sdk.Handle) sdk.Change {
	knob := knobOpenMPI
	if l == mpichUCX {
		knob = knobMPICH
	}
	return sdk.Change{Knob: knob, Process: p, Action: l.yields()}
}

// yields is the action of change.
func (l library) yields() sdk.Action {
	if l == mpichUCX {
		return sdk.InsertCall(sdk.Function{Object: libucp, Symbol: "ucp_worker_progress"}, sdk.Function{Object: "libc.so*", Symbol: "sched_yield"})
	}
	return sdk.SetVariableFrom("libopen-pal.so*", "opal_progress_yield_when_idle", 1, sdk.Bool(false), sdk.Bool(true))
}
