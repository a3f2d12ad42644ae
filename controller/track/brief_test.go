// SPDX-License-Identifier: Apache-2.0

package track_test

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/track"
)

// brevity is what a tracker says of programs.
type brevity struct {
	mu   sync.Mutex
	said []bool
}

func (b *brevity) take() []bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	said := b.said
	b.said = nil
	return said
}

// TestBrief: a program is brief when it has been eight times in a row, until it once
// is not: lives on, forks, or executes another one.
func TestBrief(t *testing.T) {
	where, err := filepath.EvalSymlinks("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	const quick, slow = uint64(time.Millisecond), uint64(track.Grace)
	tests := []struct {
		name  string
		lived uint64
		then  func(t *testing.T, pid int, at uint64) track.Event
	}{
		{"lives on", slow, nil},
		{"forks", quick, func(_ *testing.T, pid int, at uint64) track.Event {
			return track.Event{Kind: track.Fork, PID: goneB, Parent: pid, Member: true, Time: at}
		}},
		{"executes another", quick, func(t *testing.T, pid int, at uint64) track.Event {
			e := executed(t, pid, at, "/bin/false", "false")
			e.Program.Inode++
			return e
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var said brevity
			s := beginWith(t, "true", func(executable string, brief bool) {
				said.mu.Lock()
				defer said.mu.Unlock()
				if executable != where {
					t.Errorf("told of %q, want %q", executable, where)
				}
				said.said = append(said.said, brief)
			})
			began := now() - uint64(time.Minute)
			run := func(n int, lived uint64, then func(*testing.T, int, uint64) track.Event) {
				at := began + uint64(n)*uint64(time.Second)
				events := []track.Event{
					{Kind: track.Fork, PID: goneA, Parent: s.job.pid(), Member: true, Time: at},
					executed(t, goneA, at+1, "/bin/true", "true"),
				}
				if then != nil {
					events = append(events, then(t, goneA, at+2))
				}
				s.tell(t, append(events, track.Event{Kind: track.Exit, PID: goneA, Member: true, Last: true, Time: at + lived + 2})...)
			}
			for n := range 7 {
				run(n, quick, nil)
			}
			if got := said.take(); got != nil {
				t.Fatalf("said %v after seven, want nothing", got)
			}
			run(7, quick, nil)
			if diff := cmp.Diff([]bool{true}, said.take()); diff != "" {
				t.Fatal(diff)
			}
			run(8, tt.lived, tt.then)
			if diff := cmp.Diff([]bool{false}, said.take()); diff != "" {
				t.Fatal(diff)
			}
			for n := range 10 {
				run(9+n, quick, nil)
			}
			if got := said.take(); got != nil {
				t.Errorf("said %v of one that once was not, want nothing", got)
			}
		})
	}
}
