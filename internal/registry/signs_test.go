// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"testing"
	"testing/synctest"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// life is how long records of Analyzers live here.
const life = 9 * time.Second

// A lease is valid for two thirds of a record's life from the beginning of the
// last write on, and not for a moment longer, whenever that write was answered.
func TestValidForTwoThirds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Announcement{written: make(chan struct{})}
		if term, _ := a.valid(); term != 0 {
			t.Errorf("valid in term %d before anything was written", term)
		}
		began := time.Now()
		time.Sleep(time.Second) // until the answer
		a.renewed(life, began)
		time.Sleep(life*2/3 - time.Second - 1)
		if term, _ := a.valid(); term != 1 {
			t.Errorf("term %d at the last moment, want 1", term)
		}
		time.Sleep(time.Nanosecond)
		term, renewed := a.valid()
		if term != 0 {
			t.Errorf("still valid in term %d", term)
		}
		a.renewed(life, time.Now())
		if term, _ := a.valid(); term != 2 {
			t.Errorf("term %d after another life, want 2", term)
		}
		a.renewed(life, time.Now())
		if term, _ := a.valid(); term != 2 {
			t.Errorf("term %d after a renewal in time, want the same", term)
		}
		<-renewed // or nobody would hear of it
	})
}

// An Analyzer is silent since its last new sign, and not for longer than somebody
// has looked.
func TestSignsOfLife(t *testing.T) {
	sign := func(revision uint64) []change {
		return []change{{key: "a", revision: revision, record: &attunev1.AnalyzerRecord{Id: "a"}}}
	}
	for _, row := range []struct {
		name   string
		happen func(*signsOfLife)
		silent time.Duration
		left   bool
	}{
		{"nothing is known", func(*signsOfLife) {}, 10 * time.Second, false},
		{"a sign", func(s *signsOfLife) { s.observe(sign(1), false) }, 5 * time.Second, false},
		{"the same sign, read again", func(s *signsOfLife) {
			s.observe(sign(1), false)
			time.Sleep(2 * time.Second)
			s.observe(sign(1), false)
		}, 7 * time.Second, false},
		{"another sign", func(s *signsOfLife) {
			s.observe(sign(1), false)
			time.Sleep(2 * time.Second)
			s.observe(sign(2), false)
		}, 5 * time.Second, false},
		{"a sign may have been missed", func(s *signsOfLife) {
			s.observe(sign(1), false)
			time.Sleep(2 * time.Second)
			s.observe(nil, true)
		}, 5 * time.Second, false},
		{"good-bye", func(s *signsOfLife) {
			s.observe(sign(1), false)
			s.observe([]change{{key: "a", revision: 2}}, false)
		}, 5 * time.Second, true},
		{"it is back", func(s *signsOfLife) {
			s.observe([]change{{key: "a", revision: 2}}, false)
			s.observe(sign(3), false)
		}, 5 * time.Second, false},
		{"another one's sign", func(s *signsOfLife) {
			s.observe([]change{{key: "b", revision: 1, record: &attunev1.AnalyzerRecord{Id: "b"}}}, false)
		}, 10 * time.Second, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSignsOfLife()
				time.Sleep(5 * time.Second)
				row.happen(s)
				time.Sleep(5 * time.Second)
				if silent, left := s.silent("a"); silent != row.silent || left != row.left {
					t.Errorf("silent for %v, has left %v; want %v, %v", silent, left, row.silent, row.left)
				}
			})
		})
	}
}

// The dead are forgotten, so that the memory of a site that starts an Analyzer a
// day does not grow.
func TestTheDeadAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSignsOfLife()
		s.observe([]change{{key: "a", revision: 1, record: &attunev1.AnalyzerRecord{Id: "a"}}}, false)
		s.observe([]change{{key: "a", revision: 2}}, false)
		time.Sleep(time.Hour + 1)
		s.observe(nil, false)
		if n := len(s.seen) + len(s.revisions) + len(s.left); n != 0 {
			t.Errorf("%d things are remembered of the dead", n)
		}
	})
}
