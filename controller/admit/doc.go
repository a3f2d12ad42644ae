// SPDX-License-Identifier: Apache-2.0

// Package admit is how processes become members: what happens from the moment that
// the tracker has seen one, or that it comes to the start gate, until measure points
// are placed in it, and how it goes again.
//
//	follower   what the tracker tells: a process is seen, changes, has ended
//	door       what happens at the start gate
//	early      whether new processes may run past the gate
//	arrivals   who is young, in one queue and under one timer; settling looks at them
//	entering   DMLib is brought into a process that runs; attaching, because somebody named it
//	library    DMLib is brought into processes that came without, when it is needed
//	ways       which ways lead into a process; points are placed by them
//	refreshing patches of libraries that were loaded again
//
// The engines are controller/gate and controller/inject. Each type here knows those
// that come after it in the order follower, settling, library, entering, door, ways,
// and none before it. The mutexes of arrivals and Attached are leaves; that of early
// is held while the gate is told.
package admit
