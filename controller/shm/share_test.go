// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"testing"

	"github.com/attune-hpc/attune/dmlib/abi"
)

func mustShare(t *testing.T, m *Memory, hook int, c PointControl) int {
	t.Helper()
	index, err := m.Share(hook, c)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// expectShared compares what DMLib is told of a hook.
func expectShared(t *testing.T, m *Memory, hook int, word uint32, sharers uint16) {
	t.Helper()
	at := m.controlAt(hook)
	gotWord, gotSharers := load32(m.data, at+abi.PointControlWordAt), uint16(load32(m.data, at+abi.PointControlParameterAt))
	if gotWord != word || gotSharers != sharers {
		t.Errorf("hook %d: word %#x, sharers %#x; want %#x, %#x", hook, gotWord, gotSharers, word, sharers)
	}
}

func TestShare(t *testing.T) {
	m, app := mustApp(t, small())
	mustSet(t, m, 0, PointControl{Point: 1, Event: true})
	timed := mustShare(t, m, 0, PointControl{Point: 2, Aggregate: true, Duration: true})
	plain := mustShare(t, m, 0, PointControl{Point: 3, Aggregate: true, Only: &Range{Min: 5, Max: 9}})
	if timed == plain || timed < abi.SharerFirst || plain >= HookCount {
		t.Fatalf("sharers %d and %d", timed, plain)
	}
	both := uint16(1)<<(timed-abi.SharerFirst) | uint16(1)<<(plain-abi.SharerFirst)
	expectShared(t, m, 0, abi.CtlEvent|abi.CtlShared|abi.CtlTimed, both)
	if _, least, most := app.Predicate(plain); least != 5 || most != 9 || app.Control(plain) != abi.CtlAggregate {
		t.Errorf("sharer: word %#x, %d to %d", app.Control(plain), least, most)
	}

	mustSet(t, m, timed, PointControl{Point: 2, Aggregate: true}) // no duration any more
	expectShared(t, m, 0, abi.CtlEvent|abi.CtlShared, both)
	mustSet(t, m, 0, PointControl{Point: 1, Aggregate: true, Parameter: 4})
	expectShared(t, m, 0, abi.CtlAggregate|abi.CtlShared, both)

	m.ClearPoint(0) // the others go on
	expectShared(t, m, 0, abi.CtlShared, both)
	m.ClearPoint(timed)
	expectShared(t, m, 0, abi.CtlShared, uint16(1)<<(plain-abi.SharerFirst))
	m.ClearPoint(plain)
	expectShared(t, m, 0, 0, 0)
	if again := mustShare(t, m, 16, PointControl{Point: 4, Event: true}); again != timed {
		t.Errorf("point %d, want %d again", again, timed)
	}
	expectShared(t, m, 0, 0, 0)
	expectShared(t, m, 16, abi.CtlShared, 1)
}

func TestShareRefuses(t *testing.T) {
	m := mustNew(t, small())
	good := PointControl{Point: 1, Event: true}
	for _, hook := range []int{-1, abi.SharerFirst, HookCount, PointCount} {
		if _, err := m.Share(hook, good); err == nil {
			t.Errorf("local point %d was shared", hook)
		}
	}
	if _, err := m.Share(0, PointControl{Point: 1}); err == nil {
		t.Error("a control that delivers nothing was taken")
	}
	for range abi.SharerCount {
		mustShare(t, m, 0, good)
	}
	if _, err := m.Share(1, good); !errors.Is(err, ErrSharers) {
		t.Errorf("one too many: %v", err)
	}
}
