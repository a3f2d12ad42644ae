// SPDX-License-Identifier: Apache-2.0

package ring

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
	// AttendEntry is the function that a stopped thread calls to execute
	// commands for AtStopped.
	AttendEntry uint64
	// LostNoSlot counts events of threads that found no slot, ever.
	LostNoSlot uint64
	// Forks counts children that left this memory behind, ever.
	Forks uint64
	// Rings is how many rings have been handed out, at most Geometry.Rings.
	Rings int
}

// App reads the application's part of the header; the zero value after Close.
// Safe to call at any time.
func (m *Memory) App() App {
	m.life.RLock()
	defer m.life.RUnlock()
	if m.data == nil {
		return App{}
	}
	b := m.data
	return App{
		Ready:       load32(b, headerState) == 1,
		PID:         int(int32(load32(b, headerPID))),
		Base:        load64(b, headerDMLibBase),
		StubEntry:   load64(b, headerStubEntry),
		StubSize:    int(load32(b, headerStubSize)),
		StubCount:   min(int(load32(b, headerStubCount)), StubCount),
		StubTarget:  load64(b, headerStubTarget),
		PatchEntry:  load64(b, headerPatchEntry),
		PatchExit:   load64(b, headerPatchExit),
		StubUnbound: load64(b, headerStubUnbound),
		AttendEntry: load64(b, headerAttendEntry),
		LostNoSlot:  load64(b, headerLostNoSlot),
		Forks:       load64(b, headerForkCount),
		Rings:       min(int(load32(b, headerRingNext)), m.geometry.Rings),
	}
}

// Detach turns every measure point off and tells DMLib to go inert for good;
// the memory stays readable, so that what is left can be drained. Safe to call
// at any time.
func (m *Memory) Detach() {
	m.life.RLock()
	defer m.life.RUnlock()
	if m.data != nil {
		m.detach()
	}
}
