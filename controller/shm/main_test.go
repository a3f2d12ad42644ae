// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"os"
	"testing"

	"github.com/attune-hpc/attune/controller/internal/dmtest"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
)

// TestMain fails if a test leaves a goroutine, a child or a descriptor behind.
func TestMain(m *testing.M) {
	if seed, is := os.LookupEnv(scribblerVariable); is {
		os.Exit(scribble(seed))
	}
	leaktest.Main(m)
}

// small is a geometry that is quick to make and easy to fill.
func small() Geometry {
	return Geometry{Slots: 8, Rings: 4, RingRecords: 64, Programs: 3, Tables: 2}
}

func mustNew(t testing.TB, g Geometry) *Memory {
	t.Helper()
	m, err := New(g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// mustApp makes a memory and an application that has mapped it.
func mustApp(t testing.TB, g Geometry) (*Memory, *dmtest.App) {
	t.Helper()
	m := mustNew(t, g)
	return m, dmtest.Map(t, m.File().Fd())
}

func mustSet(t testing.TB, m *Memory, index int, c PointControl) {
	t.Helper()
	if err := m.SetPoint(index, c); err != nil {
		t.Fatal(err)
	}
}

// steadyClock runs at a rate that is easy to check: 4 ticks are one
// nanosecond, tick 0 is nanosecond 1000. Its anchor is at tick 4000.
func steadyClock() *Clock {
	c := &Clock{now: func() uint64 { return 4000 }}
	c.scale.Store(&Scale{ticks: 4000, nanos: 2000, mult: 1 << 30})
	return c
}
