// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

var errFilteredChild = errors.New("it has a filter")

// TestAttendChild: the child is looked at while it waits, and not before.
func TestAttendChild(t *testing.T) {
	for _, row := range []struct {
		name   string
		guard  error // of the process
		filter error // of the child
		answer uint32
	}{
		{"free", nil, nil, abi.ChildMay},
		{"filtered", nil, errFilteredChild, abi.ChildMayNot},
		{"process confined since", ErrConfined, nil, abi.ChildMayNot},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, app := mustApp(t, small())
			word := app.U64(abi.HeaderChildAt)
			m.SetGuard(func() error { return row.guard })
			m.SetNurse(func(child int) func() error {
				if child != 77 {
					t.Errorf("asked after child %d, want 77", child)
				}
				return func() error {
					if got := atomic.LoadUint64(word); got != uint64(childSays(abi.ChildWaits, 77)) {
						t.Errorf("looked at a child that says %#x", got)
					}
					return row.filter
				}
			})
			if m.ChildAsks() {
				t.Error("a child asks before it does")
			}
			atomic.StoreUint64(word, uint64(childSays(abi.ChildAsks, 77)))
			if !m.ChildAsks() {
				t.Error("no child asks")
			}
			go func() {
				for !atomic.CompareAndSwapUint64(word, uint64(childSays(abi.ChildAttended, 77)), uint64(childSays(abi.ChildWaits, 77))) {
					atomic.CompareAndSwapUint64(word, 0, uint64(childSays(abi.ChildAsks, 77)))
				}
			}()
			var err error
			patience.Until(t, "the child to be answered", func() bool {
				err = m.AttendChild(patience.Context(t))
				return childWord(atomic.LoadUint64(word)).state() > abi.ChildWaits
			})
			if got := atomic.LoadUint64(word); got != uint64(childSays(row.answer, 77)) {
				t.Errorf("answer %#x, want state %d", got, row.answer)
			}
			if want := errors.Join(row.guard, row.filter); (err == nil) != (want == nil) {
				t.Errorf("error %v, want %v", err, want)
			}
		})
	}
}

func TestBeat(t *testing.T) {
	m, app := mustApp(t, small())
	m.Beat()
	m.Beat()
	if got := atomic.LoadUint32(app.U32(abi.HeaderBeatAt)); got != 2 {
		t.Errorf("%d beats, want 2", got)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	m.Beat()
}

// TestAttendChildThatGoesOn: a child that does not come again, or goes on before it is
// answered, is not answered; the next one can ask.
func TestAttendChildThatGoesOn(t *testing.T) {
	for _, row := range []struct {
		name  string
		state uint32
	}{
		{"sleeps", abi.ChildAsks},
		{"killed while attended to", abi.ChildAttended},
		{"killed while it waited", abi.ChildWaits},
		{"killed before it fetched the answer", abi.ChildMay},
		{"unknown", 99},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, app := mustApp(t, small())
			m.SetNurse(func(int) func() error {
				return func() error { t.Error("looked at a child that does not wait"); return nil }
			})
			atomic.StoreUint64(app.U64(abi.HeaderChildAt), uint64(childSays(row.state, 77)))
			if err := m.AttendChild(context.Background()); err != nil {
				t.Error(err)
			}
			if got := atomic.LoadUint64(app.U64(abi.HeaderChildAt)); got != 0 {
				t.Errorf("the word is %#x, want nothing", got)
			}
		})
	}
}

// TestChildrenThatAskAllTheTime: a program that asks again and again takes a bounded
// share of the controller's time.
func TestChildrenThatAskAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, app := mustApp(t, small())
		attended := 0
		m.SetNurse(func(int) func() error { attended++; return func() error { return nil } })
		const span = 100 * childPatience
		for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(time.Millisecond) {
			atomic.StoreUint64(app.U64(abi.HeaderChildAt), uint64(childSays(abi.ChildAsks, 77)))
			if err := m.AttendChild(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if most := int(span/childPatience)/(1+childRest) + 1; attended == 0 || attended > most {
			t.Errorf("attended to %d times, want at most %d", attended, most)
		}
	})
}

// TestChildStopsWaiting: the answer to a child that has stopped waiting during the look
// does not reach it.
func TestChildStopsWaiting(t *testing.T) {
	m, app := mustApp(t, small())
	word := app.U64(abi.HeaderChildAt)
	waits := childSays(abi.ChildWaits, 77)
	atomic.StoreUint64(word, uint64(waits))
	err := m.judgeChild(waits, func() error {
		atomic.StoreUint64(word, uint64(childSays(abi.ChildAsks, 77)))
		return errFilteredChild
	})
	if got := childWord(atomic.LoadUint64(word)).state(); err != nil || got != abi.ChildAsks {
		t.Errorf("state %d, %v; want the new question unanswered", got, err)
	}
}
