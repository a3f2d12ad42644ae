// SPDX-License-Identifier: Apache-2.0

package shm

import "github.com/attune-hpc/attune/dmlib/abi"

// App is what DMLib tells about itself in the header. All of it is untrusted.
type App struct {
	// PID is the process id as the process sees itself; in a container it is
	// not the controller's number for it.
	PID int
	// Ready is true once DMLib has filled in the rest.
	Ready bool
	// Base is the load address of DMLib.
	Base uint64
	// StubEntry is the address of stub 0, StubSize the distance from one to
	// the next in bytes, StubCount how many there are.
	StubEntry uint64
	StubSize  int
	StubCount int
	// StubTarget is the address of stub 0's target, the first of StubCount
	// pointers in the application's private memory.
	StubTarget uint64
	// StubUnbound is the target of a stub that is not bound; so is 0.
	StubUnbound uint64
	// PatchEntry is what the islands of entry patches call; 0: not supported.
	PatchEntry uint64
	// PatchExit is what they call where a function ends; 0: not supported.
	PatchExit uint64
	// HookEntry is the address of an abi.HookEntryBytes for each hook, of which those
	// have some that are led to on demand.
	HookEntry uint64
	// AttendEntry is the function that a stopped thread calls to execute
	// commands for AtStopped.
	AttendEntry uint64
	// LostNoSlot counts events of threads that found no slot, ever.
	LostNoSlot uint64
}

// app reads the application's part of the header; the zero value after Close.
func (m *mapping) app() App {
	m.life.RLock()
	defer m.life.RUnlock()
	if m.data == nil {
		return App{}
	}
	b := m.data
	return App{
		Ready:       load32(b, abi.HeaderStateAt) == 1,
		PID:         int(int32(load32(b, abi.HeaderPIDAt))),
		Base:        load64(b, abi.HeaderDMLIBBaseAt),
		StubEntry:   load64(b, abi.HeaderStubEntryAt),
		StubSize:    int(load32(b, abi.HeaderStubSizeAt)),
		StubCount:   min(int(load32(b, abi.HeaderStubCountAt)), StubCount),
		StubTarget:  load64(b, abi.HeaderStubTargetAt),
		PatchEntry:  load64(b, abi.HeaderPatchEntryAt),
		PatchExit:   load64(b, abi.HeaderPatchExitAt),
		StubUnbound: load64(b, abi.HeaderStubUnboundAt),
		HookEntry:   load64(b, abi.HeaderHookEntryAt),
		AttendEntry: load64(b, abi.HeaderAttendEntryAt),
		LostNoSlot:  load64(b, abi.HeaderLostNoSlotAt),
	}
}
