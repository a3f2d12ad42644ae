// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// byHand is a reclaimer whose looks a test makes.
func byHand(t *testing.T) (r *reclaimer, look func() bool) {
	t.Helper()
	percent := debug.SetGCPercent(-1) // no collection that the test does not make
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	var due func()
	r = &reclaimer{wait: func(_ time.Duration, f func()) { due = f }}
	return r, func() bool {
		if due == nil {
			return false
		}
		f := due
		due = nil
		f()
		return true
	}
}

// garbage is what a test leaves.
const garbage = 32 << 20

// litter leaves it.
func litter() {
	for range garbage >> 16 {
		dropped := new([]byte)
		*dropped = make([]byte, 1<<16)
		runtime.SetFinalizer(dropped, nil) // has it be on the heap
	}
}

// held is what the heap holds, bytes.
func held() int64 { return int64(readHeap().held) }

func TestACalmProcessGivesMemoryBack(t *testing.T) {
	r, look := byHand(t)
	if look() {
		t.Fatal("a process that nobody has called is woken")
	}
	litter()
	full := held()
	r.called()
	look() // it may have been busy until now
	look()
	if back := full - held(); back < garbage*3/4 {
		t.Errorf("%d bytes are given back of %d", back, garbage)
	}
	for looks := 0; look(); looks++ {
		if looks == 10 {
			t.Fatal("a process without garbage is looked at for ever")
		}
	}
	r.called()
	if !look() {
		t.Error("a process that is called again is not looked at")
	}
}

func TestABusyProcessKeepsItsMemory(t *testing.T) {
	r, look := byHand(t)
	for range 3 {
		runtime.GC() // for want of memory
		litter()
		cycles := readHeap().cycles
		r.called()
		look()
		if again := readHeap().cycles - cycles; again != 0 {
			t.Fatalf("%d collections in a busy process", again)
		}
	}
	if full := held(); !look() || full-held() < garbage*3/4 {
		t.Errorf("%d bytes are given back of %d when it is calm", full-held(), garbage)
	}
}

func TestWhatIsAliveIsNoReasonToCollectAgain(t *testing.T) {
	r, look := byHand(t)
	alive := make([]byte, 32<<20)
	r.called()
	for range 10 {
		look()
	}
	cycles := readHeap().cycles
	r.called()
	for range 10 {
		look()
	}
	if again := readHeap().cycles; again != cycles {
		t.Errorf("%d more collections", again-cycles)
	}
	runtime.KeepAlive(alive)
}
