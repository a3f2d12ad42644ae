// SPDX-License-Identifier: Apache-2.0

package link

import (
	"testing"
)

// lostOf sums up what is lost if a connection breaks.
func lostOf(u *underway) (sum Loss) {
	for _, loss := range u.losses() {
		sum = sum.plus(loss)
	}
	return sum
}

// TestUnderway: what was sent and is not acknowledged is lost, each message once.
func TestUnderway(t *testing.T) {
	const enough = maxUnderway + 100
	send := func(messages int) func(*underway) {
		return func(u *underway) {
			for range messages {
				u.send(Loss{Hits: 3})
			}
		}
	}
	acknowledge := func(messages uint64) func(*underway) {
		return func(u *underway) { u.acknowledge(messages) }
	}
	tests := []struct {
		name  string
		steps []func(*underway)
		want  uint64 // hits
	}{
		{"nothing is acknowledged", []func(*underway){send(100)}, 300},
		{"some are", []func(*underway){send(100), acknowledge(60)}, 3 * 40},
		{"again and again", []func(*underway){send(20), acknowledge(10), send(20), acknowledge(30), send(20), acknowledge(31)}, 3 * 29},
		{"before they count as sent", []func(*underway){acknowledge(10), send(12)}, 3 * 2},
		{"an older word is none", []func(*underway){send(10), acknowledge(8), acknowledge(5)}, 3 * 2},
		{"all are", []func(*underway){send(100), acknowledge(100)}, 0},
		{"more than are kept", []func(*underway){send(enough)}, 3 * enough},
		{"some of more than are kept", []func(*underway){send(enough), acknowledge(maxUnderway - 1)}, 3 * (enough - maxUnderway + 1)},
		{"part of what is kept together", []func(*underway){send(enough), acknowledge(enough - 1)}, 3 * (enough - maxUnderway + 1)},
		{"all of more than are kept", []func(*underway){send(enough), acknowledge(enough), send(1)}, 3},
		{"the Analyzer does not say", []func(*underway){send(10), (*underway).trust, send(10)}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u := new(underway)
			for _, step := range test.steps {
				step(u)
			}
			if got := lostOf(u); got != (Loss{Hits: test.want}) {
				t.Errorf("lost %+v, want %d hits", got, test.want)
			}
		})
	}
}

// TestRecordsUnderwayKeepTheirProcess: which is told of them.
func TestRecordsUnderwayKeepTheirProcess(t *testing.T) {
	u := new(underway)
	u.send(Loss{Process: 1, Records: 10, LostRing: 2})
	u.send(Loss{}) // who lives
	u.send(Loss{Process: 2, Records: 20})
	got := u.losses()
	if len(got) != 2 || got[0] != (Loss{Process: 1, Records: 10, LostRing: 2}) || got[1] != (Loss{Process: 2, Records: 20}) {
		t.Errorf("lost %+v", got)
	}
}

// TestUnderwayTakesNoMemory but for the first messages.
func TestUnderwayTakesNoMemory(t *testing.T) {
	u, sent := new(underway), uint64(0)
	round := func() {
		for range 200 {
			u.send(Loss{Process: 1, Records: 4096})
			sent++
		}
		u.acknowledge(sent - 10)
	}
	round()
	if n := testing.AllocsPerRun(100, round); n > 0 {
		t.Errorf("%v allocations for 200 messages, want none", n)
	}
}

func BenchmarkUnderway(b *testing.B) {
	u := new(underway)
	for n := range b.N {
		u.send(Loss{Process: 1, Records: 4096})
		if n%64 == 63 {
			u.acknowledge(uint64(n) - 10)
		}
	}
}
