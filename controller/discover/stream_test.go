// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// breaking is a stream that tells what it is given, and fails when told so.
type breaking struct {
	events   chan event
	fail     chan error
	followed map[int]uint32
	gone     int // a process that cannot be followed any more; 0: all can
}

func newBreaking() *breaking {
	return &breaking{events: make(chan event), fail: make(chan error, 1), followed: make(map[int]uint32)}
}

func (*breaking) mode() string { return ModeWatch }

func (b *breaking) follow(pid int, view uint32) error {
	if pid == b.gone {
		return fmt.Errorf("follow process %d: %w", pid, procid.ErrGone)
	}
	b.followed[pid] = view
	return nil
}

func (*breaking) account(int) error { return nil }

func (b *breaking) unfollow(pid int) error {
	delete(b.followed, pid)
	return nil
}

func (*breaking) want([]procevent.Name) error { return nil }

func (b *breaking) run(ctx context.Context, handle func(event)) error {
	for {
		select {
		case e := <-b.events:
			handle(e)
		case err := <-b.fail:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

func (*breaking) lost() uint64 { return 5 }

func (*breaking) refused(uint32) uint64 { return 2 }

func (*breaking) close() error { return nil }

// When the way in use fails, the next one takes over: it follows whom the former
// followed, and what was missed in between is found.
func TestFallback(t *testing.T) {
	first, second := newBreaking(), newBreaking()
	told := 0
	w, err := New(Options{Handler: newRecorder(), Changed: func() { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	w.listener.ways = []way{
		{name: "none", open: func() (stream, error) { return nil, errors.New("not on this kernel") }},
		{name: "in vain", open: func() (stream, error) { panic("tried") }, vain: func(err error) bool { return err.Error() == "not on this kernel" }},
		{name: "first", open: func() (stream, error) { return first, nil }},
		{name: "second", open: func() (stream, error) { return second, nil }},
		waysOf(ModePoll, 1)[0],
	}
	r := &running{Watcher: w, recorder: w.state.decider.handler.(*recorder)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if told != 3 {
			t.Errorf("told %d times of another way, want 3", told)
		}
	}()
	path := mustProgram(t, "attune-t-fallback")
	w.SetRegistrations([]*attunev1.Registration{site("r", path)})
	r.mustEventually(t, "first", func() bool { return strings.Contains(w.Status().Reason, "not on this kernel") })
	source := w.Source(0)
	member := mustStart(t, exec.Command("sleep", "1000")) // who is not there is soon forgotten
	if err := source.Add(member); err != nil {
		t.Fatal(err)
	}
	first.fail <- errors.New("it broke")
	r.mustEventually(t, "second", func() bool { return strings.Contains(w.Status().Reason, "it broke") })
	second.fail <- nil // a stream that ends by itself has failed, too
	r.mustEventually(t, "polling", func() bool { return w.Status().Mode == ModePoll })
	if second.followed[member] == 0 || first.followed[member] != second.followed[member] {
		t.Errorf("followed %v, then %v", first.followed, second.followed)
	}
	if lost := source.Lost(); lost < 5+2+1+5+2+1 {
		t.Errorf("%d events lost, want those of both streams, of all and of this view, and one for each change", lost)
	}
	r.mustFindOnly(t, mustStart(t, exec.Command(path, "1000")))
}

// A member that ends while a stream begins costs the node neither the stream nor the others.
func TestMemberThatEndsAsAStreamBegins(t *testing.T) {
	h := newHub()
	v := h.newView(0)
	if err := errors.Join(v.Add(101), v.Add(102)); err != nil {
		t.Fatal(err)
	}
	s := newBreaking()
	s.gone = 101
	if err := h.use(s, ""); err != nil {
		t.Fatalf("the stream is not used: %v", err)
	}
	if _, there := h.members[101]; there || s.followed[102] != v.id {
		t.Errorf("members %v, of which %v are followed", h.members, s.followed)
	}
}

// Each view hears of its own processes and their descendants.
func TestViews(t *testing.T) {
	for _, tagged := range []bool{false, true} {
		h := newHub()
		one, two := h.newView(1), h.newView(2)
		if err := errors.Join(one.Add(101), two.Add(102)); err != nil {
			t.Fatal(err)
		}
		tell := func(view *view, e track.Event) {
			told := event{Event: e, tagged: tagged}
			if tagged && view != nil {
				told.view = view.id
			}
			h.event(t.Context(), told)
		}
		tell(one, track.Event{Kind: track.Fork, PID: 201, Parent: 101})
		tell(one, track.Event{Kind: track.Fork, PID: 301, Parent: 201})
		tell(two, track.Event{Kind: track.Exec, PID: 102})
		tell(nil, track.Event{Kind: track.Exec, PID: 103})
		tell(nil, track.Event{Kind: track.Fork, PID: 203, Parent: 103})
		tell(one, track.Event{Kind: track.Exit, PID: 201, Last: true})
		tell(one, track.Event{Kind: track.Exit, PID: 301}) // its first thread
		tell(one, track.Event{Kind: track.Exec, PID: 301})
		if got := pids(t, one); got != "F201 F301 X201 X301 E301 " {
			t.Errorf("tagged %t: one hears %q", tagged, got)
		}
		if got := pids(t, two); got != "E102 " {
			t.Errorf("tagged %t: two hears %q", tagged, got)
		}
		if e := <-h.candidates; e.PID != 103 || e.Member {
			t.Errorf("tagged %t: candidate %+v", tagged, e)
		}
		if !h.taken(key{301, 5}) || h.taken(key{201, 5}) || h.taken(key{203, 5}) {
			t.Errorf("tagged %t: members %v", tagged, h.members)
		}
		if err := one.Close(); err != nil || h.taken(key{301, 5}) {
			t.Errorf("tagged %t: still taken after close, %v", tagged, err)
		}
	}
}

// pids reads what is queued in a view.
func pids(t *testing.T, v *view) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var text strings.Builder
	letters := map[track.Kind]string{track.Fork: "F", track.Exec: "E", track.Exit: "X"}
	if err := v.Run(ctx, func(e track.Event) {
		if !e.Member {
			t.Errorf("event %+v of a stranger", e)
		}
		text.WriteString(letters[e.Kind])
		text.WriteString(strconv.Itoa(e.PID) + " ")
	}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// A listener that does not listen loses events and hears of it, and holds up
// nobody.
func TestSlowView(t *testing.T) {
	h := newHub()
	slow := h.newView(0)
	if err := slow.Add(101); err != nil {
		t.Fatal(err)
	}
	for range viewQueue + 7 {
		h.event(t.Context(), event{Event: track.Event{Kind: track.Exec, PID: 101}})
	}
	if lost := slow.Lost(); lost != 7 {
		t.Errorf("%d lost, want 7", lost)
	}
}

// A number that was a member's and is somebody else's by now is no member.
func TestPrune(t *testing.T) {
	h := newHub()
	v := h.newView(0)
	for pid, start := range map[int]uint64{1: 10, 2: 20, 3: 0} {
		h.join(pid, member{view: v.id, start: start})
	}
	mark := h.mark()
	h.join(4, member{view: v.id, start: 40}) // after it was looked who is there
	left := h.prune(map[int]uint64{1: 10, 2: 21, 3: 30}, mark)
	if _, two := h.members[2]; two || left != 3 || h.size() != 3 {
		t.Errorf("members %v", h.members)
	}
}

// A process of one listener's is not another's, whose name for it is its number.
func TestOthersMember(t *testing.T) {
	h := newHub()
	one, two := h.newView(1), h.newView(2)
	self := os.Getpid()
	if err := errors.Join(one.Add(self), one.Add(self)); err != nil {
		t.Fatal(err)
	}
	if err := two.Add(self); err == nil || h.members[self].view != one.id {
		t.Errorf("it is taken away: %v", err)
	}
	if err := errors.Join(one.Remove(self), two.Add(self)); err != nil {
		t.Errorf("it is not let go: %v", err)
	}
}
