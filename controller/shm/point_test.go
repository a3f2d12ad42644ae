// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math"
	"testing"

	"github.com/attune-hpc/attune/dmlib/abi"
)

func TestSetPoint(t *testing.T) {
	halfNanos := Scale{mult: 1 << 31}
	tests := []struct {
		name        string
		index       int
		control     PointControl
		word, mask  uint32
		least, most uint64
	}{
		{"events", 0, PointControl{Point: 1, Event: true}, abi.CtlEvent, 0, 0, math.MaxUint64},
		{"aggregate", 63, PointControl{Point: 1, Aggregate: true, SampleEvery: 1}, abi.CtlAggregate, 0, 0, math.MaxUint64},
		{"sampled", 64, PointControl{Point: 1, Event: true, SampleEvery: 64}, abi.CtlEvent, 63, 0, math.MaxUint64},
		{"all", 62, PointControl{Point: 1, Aggregate: true, Event: true, Duration: true, Only: &Range{Min: 5, Max: 9}, Scale: halfNanos},
			abi.CtlAggregate | abi.CtlEvent | abi.CtlDuration, 0, 10, 19},
		{"long", 62, PointControl{Point: 1, Aggregate: true, Duration: true, Only: &Range{Min: 5, Max: math.MaxUint64}, Scale: halfNanos},
			abi.CtlAggregate | abi.CtlDuration, 0, 10, math.MaxUint64},
		{"last stub", 255, PointControl{Point: 1, Event: true}, abi.CtlEvent, 0, 0, math.MaxUint64},
		{"only zero", 1, PointControl{Point: 1, Event: true, Only: &Range{}}, abi.CtlEvent, 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, app := mustApp(t, small())
			mustSet(t, m, tt.index, tt.control)
			if got := app.Control(tt.index); got != tt.word {
				t.Errorf("word %#x, want %#x", got, tt.word)
			}
			mask, least, most := app.Predicate(tt.index)
			if mask != tt.mask || least != tt.least || most != tt.most {
				t.Errorf("mask %#x, %d to %d; want %#x, %d to %d", mask, least, most, tt.mask, tt.least, tt.most)
			}
			m.ClearPoint(tt.index)
			if got := app.Control(tt.index); got != 0 {
				t.Errorf("word %#x after ClearPoint", got)
			}
		})
	}
}

func TestSetPointRefuses(t *testing.T) {
	good := PointControl{Point: 1, Event: true}
	tests := []struct {
		name    string
		index   int
		control PointControl
	}{
		{"index below", -1, good},
		{"index above", PointCount, good},
		{"no session index", 0, PointControl{Event: true}},
		{"no delivery", 0, PointControl{Point: 1, Duration: true}},
		{"sample no power of two", 0, PointControl{Point: 1, Event: true, SampleEvery: 3}},
		{"empty range", 0, PointControl{Point: 1, Event: true, Only: &Range{Min: 2, Max: 1}}},
	}
	m, app := mustApp(t, small())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := m.SetPoint(tt.index, tt.control); err == nil {
				t.Error("no error")
			}
			if got := app.Control(0); got != 0 {
				t.Errorf("word %#x", got)
			}
		})
	}
	m.ClearPoint(-1)
	m.ClearPoint(PointCount)
}

// TestMailboxBitIsIndependent: measuring and commands use the same word and
// must not disturb each other.
func TestMailboxBitIsIndependent(t *testing.T) {
	m, app := mustApp(t, small())
	ticket, err := m.Post(Command{Op: OpNop, At: AtAlloc})
	if err != nil {
		t.Fatal(err)
	}
	mustSet(t, m, 0, PointControl{Point: 1, Event: true})
	if got := app.Control(0); got != abi.CtlEvent|abi.CtlMailbox {
		t.Errorf("word %#x after SetPoint", got)
	}
	m.ClearPoint(0)
	if got := app.Control(0); got != abi.CtlMailbox {
		t.Errorf("word %#x after ClearPoint", got)
	}
	mustSet(t, m, 0, PointControl{Point: 1, Aggregate: true})
	if !m.Cancel(ticket) {
		t.Fatal("not cancelled")
	}
	if got := app.Control(0); got != abi.CtlAggregate {
		t.Errorf("word %#x after Cancel", got)
	}
}

// Placing a point again, as after each library that is loaded, must not switch
// it off for a moment.
func TestSetPointAgainTouchesNothing(t *testing.T) {
	m, app := mustApp(t, small())
	set := func(c PointControl) (least uint64) {
		mustSet(t, m, 0, c)
		_, least, _ = app.Predicate(0)
		return least
	}
	c := PointControl{Point: 1, Aggregate: true, Only: &Range{Min: 5, Max: 9}}
	set(c)
	store64(m.data, m.controlAt(0)+abi.PointControlMinValueAt, 7) // a trace of what is written
	c.Only = &Range{Min: 5, Max: 9}
	if got := set(c); got != 7 {
		t.Errorf("the same again wrote %d", got)
	}
	c.Only = &Range{Min: 6, Max: 9}
	if got := set(c); got != 6 {
		t.Errorf("another range: %d, want 6", got)
	}
	m.ClearPoint(0)
	if got := set(c); got != 6 || app.Control(0) != abi.CtlAggregate {
		t.Errorf("after ClearPoint: word %#x, least %d", app.Control(0), got)
	}
}

// TestEra: calls that were open when durations ended to be measured do not end when they are
// measured again; those of a point that changes while it is in place go on.
func TestEra(t *testing.T) {
	timed := PointControl{Point: 1, Aggregate: true, Duration: true}
	counted, sampled, other := timed, timed, timed
	counted.Duration = false
	sampled.SampleEvery, other.Point = 128, 2
	tests := []struct {
		name  string
		set   *PointControl // nil: cleared
		begun uint32
	}{
		{"begins", &timed, 1},
		{"the same again", &timed, 0},
		{"sampled", &sampled, 0},
		{"counted", &counted, 0},
		{"timed again", &timed, 1},
		{"another one's", &other, 1},
		{"off", nil, 0},
		{"on again", &other, 1},
	}
	m, app := mustApp(t, small())
	for _, tt := range tests {
		before := app.Era(70)
		if tt.set == nil {
			m.ClearPoint(70)
		} else {
			mustSet(t, m, 70, *tt.set)
		}
		if begun := app.Era(70) - before; begun != tt.begun {
			t.Errorf("%s: %d eras began, want %d", tt.name, begun, tt.begun)
		}
	}
}
