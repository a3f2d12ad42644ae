// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mustState is the state of a Watcher that does not run.
func mustState(t *testing.T) *state {
	t.Helper()
	w, err := New(Options{Handler: newRecorder()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.state.decider.examiner.ctx = ctx
	t.Cleanup(func() {
		cancel()
		w.state.decider.examiner.group.Wait()
	})
	return w.state
}

// TestLooksAtWhoRunsOnce: all processes are looked at when others are meant than before, and
// not each time that registrations are set.
func TestLooksAtWhoRunsOnce(t *testing.T) {
	s := mustState(t)
	a, b, unusable := site("a", "attune-t-a"), site("b", "attune-t-b"), site("", "")
	changed := proto.CloneOf(a)
	changed.Mode = "observe"
	for _, tt := range []struct {
		name  string
		set   []*attunev1.Registration
		looks bool
	}{
		{"none", nil, false},
		{"the first", []*attunev1.Registration{a}, true},
		{"the same", []*attunev1.Registration{proto.CloneOf(a)}, false},
		{"one that means nobody", []*attunev1.Registration{a, unusable}, false},
		{"one more", []*attunev1.Registration{a, b}, true},
		{"in another order", []*attunev1.Registration{b, a}, false},
		{"one is another", []*attunev1.Registration{b, changed}, true},
		{"one is gone", []*attunev1.Registration{changed}, true},
		{"one for one", []*attunev1.Registration{b}, true},
		{"all are gone", nil, true},
		{"none still", nil, false},
	} {
		before := s.round
		s.register(tt.set)
		if looked := s.round != before; looked != tt.looks {
			t.Errorf("%s: who runs was looked at: %v", tt.name, looked)
		}
		if len(s.registered.asked) != len(tt.set) {
			t.Errorf("%s: %d are remembered", tt.name, len(s.registered.asked))
		}
	}
	before := s.round
	if s.lifted(); s.round == before {
		t.Error("what can be read now is not looked at")
	}
}

// TestPathsAreFollowedAgain: a symbolic link that leads elsewhere after a while, as when a
// new version is installed, has its registration mean that.
func TestPathsAreFollowedAgain(t *testing.T) {
	s := mustState(t)
	first, second := mustProgram(t, "attune-t-first"), mustProgram(t, "attune-t-second")
	link := filepath.Join(t.TempDir(), "attune-t-current")
	if err := os.Symlink(first, link); err != nil {
		t.Fatal(err)
	}
	follow := func(target string) {
		t.Helper()
		for {
			found := patience.Receive(t, "what the path names", s.decider.examiner.examined)
			if found.candidate != nil {
				found.candidate.close()
			}
			if found.of == nil {
				continue // a process
			}
			s.examined(found)
			if got := s.registered.usable[0].target; got != target {
				t.Errorf("the path names %q, want %q", got, target)
			}
			return
		}
	}
	s.register([]*attunev1.Registration{site("r", link)})
	follow(first)
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(second, link); err != nil {
		t.Fatal(err)
	}
	for range followTicks {
		s.tick(0)
	}
	follow(second)
	if names := s.registered.names(); !slices.ContainsFunc(names, func(n procevent.Name) bool { return n.Text == filepath.Base(second) }) {
		t.Errorf("the kernel is asked for %v", names)
	}
}

// TestLossesAreLookedForEverMoreSeldom: while events are lost everybody is looked at after ever
// more ticks, at once after the first loss, and once more when no more are lost.
func TestLossesAreLookedForEverMoreSeldom(t *testing.T) {
	s := mustState(t)
	var looks []int
	lost := uint64(0)
	tick := func(loses bool) {
		if loses {
			lost++
		}
		before := s.lost
		if s.tick(lost); s.lost != before {
			looks = append(looks, s.ticks)
		}
	}
	for range 20 {
		tick(true)
	}
	for range mostPause {
		tick(false)
	}
	tick(true)
	if want := []int{1, 2, 4, 8, 16, 32, 20 + mostPause + 1}; !slices.Equal(looks, want) || s.lost != lost {
		t.Errorf("looked at ticks %v, want %v; %d of %d losses known", looks, want, s.lost, lost)
	}
}
