// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/internal/dmtest"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/proc"
)

// slots stand for the GOT of a program, which is this test itself. Global
// variables do not move.
var slots [4]atomic.Uint64

func slotAddress(i int) uint64 { return uint64(uintptr(unsafe.Pointer(&slots[i]))) }

// unmapped is an address of the first page, as that of an unloaded library.
const unmapped = 8

// mustWriter returns a writer into the slots, with stubs at 1000, 1016 and so
// on, and an application that comes to a hook all the time. before is called
// ahead of each store.
func mustWriter(t *testing.T, before func(address uint64)) slotWriter {
	t.Helper()
	p := mustProcess(t, 1)
	app := dmtest.Map(t, p.memory.File().Fd())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for i := range shm.MailboxSize {
				if c := app.Command(i); c.Claim(uint32(shm.AtHooks)) {
					before(c.Arg(0))
					old, errno := storeGOT(c)
					c.Finish(1, 0, old, int(errno))
				}
			}
			time.Sleep(10 * time.Microsecond)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return slotWriter{memory: p.memory, app: shm.App{StubEntry: 1000, StubSize: 16, StubCount: 8}, process: self{}}
}

// stillLoading is the address of a slot of an object that never gets loaded.
var stillLoading uint64

// storeGOT does what DMLib does for shm.OpGOT.
func storeGOT(c dmtest.Command) (old uint64, errno unix.Errno) {
	for i := range slots {
		if c.Arg(0) != slotAddress(i) {
			continue
		}
		if c.Arg(0) == stillLoading {
			return 0, unix.EBUSY
		}
		if !slots[i].CompareAndSwap(c.Arg(4), c.Arg(2)) {
			return slots[i].Load(), unix.EAGAIN
		}
		return c.Arg(4), 0
	}
	return 0, unix.EFAULT
}

func redirections() []shm.Slot {
	list := make([]shm.Slot, len(slots))
	for i := range slots {
		slots[i].Store(uint64(100 + i))
		list[i] = shm.Slot{Address: slotAddress(i), To: 1000 + 16*uint64(i)}
	}
	return list
}

func wantSlots(t *testing.T, want ...uint64) {
	t.Helper()
	for i := range slots {
		if got := slots[i].Load(); got != want[i] {
			t.Errorf("slot %d holds %d, want %d", i, got, want[i])
		}
	}
}

// The loader binds a slot between our reading it and writing it.
func TestLeadMeetsTheLoader(t *testing.T) {
	list := redirections()
	bound := false
	w := mustWriter(t, func(address uint64) {
		if address == slotAddress(1) && !bound {
			bound = true
			slots[1].Store(555)
		}
	})
	led, err := w.lead(t.Context(), list)
	if err != nil || len(led) != len(slots) || led[1].Old != 555 {
		t.Fatalf("led %+v, %v", led, err)
	}
	wantSlots(t, 1000, 1016, 1032, 1048)
	if left, err := w.restore(t.Context(), led); err != nil || len(left) != 0 {
		t.Errorf("left %+v, %v", left, err)
	}
	wantSlots(t, 100, 555, 102, 103)
}

// A process that waits at the gate until a moment is written from outside until then.
func TestSlotsAfterTheGate(t *testing.T) {
	for _, row := range []struct {
		name string
		left time.Duration
		by   int // stores that DMLib makes
	}{
		{"held", time.Hour, 0},
		{"not any more", 0, 2 * len(slots)},
	} {
		t.Run(row.name, func(t *testing.T) {
			list := redirections()
			var stores atomic.Int32
			w := mustWriter(t, func(uint64) { stores.Add(1) })
			ctx, cancel := context.WithTimeout(t.Context(), row.left)
			w = w.inGate(ctx, true)
			cancel()
			led, err := w.lead(t.Context(), list)
			if err != nil || len(led) != len(slots) {
				t.Fatalf("led %+v, %v", led, err)
			}
			wantSlots(t, 1000, 1016, 1032, 1048)
			if left, err := w.restore(t.Context(), led); err != nil || len(left) != 0 {
				t.Errorf("left %+v, %v", left, err)
			}
			wantSlots(t, 100, 101, 102, 103)
			if got := int(stores.Load()); got != row.by {
				t.Errorf("DMLib made %d stores, want %d", got, row.by)
			}
		})
	}
}

// A library is unloaded, and its place taken by something else: neither that
// nor the slots of other libraries must suffer.
func TestGiveBackAfterUnload(t *testing.T) {
	list := redirections()
	w := mustWriter(t, func(uint64) {})
	led, err := w.lead(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	slots[2].Store(42) // somebody's data
	led = append([]shm.Slot{{Address: unmapped, To: 1080}}, led...)

	placer, _ := start(t)
	stubs := &stubs{hooked: new(ledSlots), host: &host{common: placer.common, process: &process{memory: w.memory}}, redirect: led}
	stubs.giveBack(t.Context(), w, []int{shm.HookCount, shm.HookCount + 1, shm.HookCount + 2, shm.HookCount + 3, shm.HookCount + 5})
	wantSlots(t, 100, 101, 42, 103)
	if len(stubs.redirect) != 0 {
		t.Errorf("still taken for redirected: %+v", stubs.redirect)
	}
}

// The same, where it happens between the look and the store.
func TestRestoreComparesAndGoesOn(t *testing.T) {
	list := redirections()
	w := mustWriter(t, func(uint64) {})
	led, err := w.lead(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	slots[0].Store(42)
	led = append([]shm.Slot{{Address: unmapped, To: 1080}}, led...)
	if left, err := w.restore(t.Context(), led); err == nil || len(left) != 0 {
		t.Errorf("left %+v, %v", left, err)
	}
	wantSlots(t, 42, 101, 102, 103)
}

// A point that cannot be placed wholly is not left to count in part.
func TestFailedPlacementIsTakenBack(t *testing.T) {
	redirections()
	stillLoading = slotAddress(1)
	t.Cleanup(func() { stillLoading = 0 })
	w := mustWriter(t, func(uint64) {})
	placer, _ := start(t)
	stubs := &stubs{
		hooked: new(ledSlots),
		host:   &host{common: placer.common, process: &process{memory: w.memory}},
		bound:  map[uint64]int{7: 0, 8: 1}, // earlier
	}
	wanted := []wantedSlot{
		{symbol: "f", Slot: shm.Slot{Address: slotAddress(0)}, function: 7},
		{symbol: "g", Slot: shm.Slot{Address: stillLoading}, function: 8},
	}
	failed := &placement{}
	if err := stubs.redirectAll(t.Context(), shm.PointControl{Point: 3, Aggregate: true}, w, wanted, failed); err == nil {
		t.Fatal("placed in an object that is not loaded yet")
	}
	stubs.takeBack(t.Context(), nil, w, failed)
	wantSlots(t, 100, 101, 102, 103)
	if got := w.memory.Aggregates(nil, shm.Scale{}); len(got) != 0 {
		t.Errorf("still counting: %+v", got)
	}
	if stubs.owner[shm.HookCount] != 0 || len(stubs.redirect) != 0 {
		t.Errorf("owner %d, redirected %+v", stubs.owner[shm.HookCount], stubs.redirect)
	}
}

// self is this very process, in the place of the one that has the slots.
type self struct{}

func (self) Hold() (*proc.Handle, error) { return proc.Open(os.Getpid()) }
