// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/internal/dmtest"
	"github.com/attune-hpc/attune/dmlib/abi"
)

func mustPost(t *testing.T, m *Memory, c Command) Ticket {
	t.Helper()
	ticket, err := m.Post(c)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

func TestPostReachesTheApplication(t *testing.T) {
	m, app := mustApp(t, small())
	want := Command{Op: OpCall, At: AtAlloc | AtStub, Thread: 55, Args: [8]uint64{1, 2, 3, 4, 5, 6, 7, 8}}
	ticket := mustPost(t, m, want)
	c := app.Command(0)
	got := Command{
		Op: Op(*c.U32(abi.CommandOpAt)), At: Family(*c.U32(abi.CommandAtAt)), Thread: int(*c.U32(abi.CommandThreadAt)),
		Args: [8]uint64{c.Arg(0), c.Arg(1), c.Arg(2), c.Arg(3), c.Arg(4), c.Arg(5), c.Arg(6), c.Arg(7)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, done := m.Poll(ticket); done {
		t.Error("done before it ran")
	}
	if ran := app.SafePoint(55, HookCount+3, uint32(AtStub)); ran != 1 {
		t.Fatalf("ran %d", ran)
	}
	result, done := m.Poll(ticket)
	if diff := cmp.Diff(Result{Value: 36, Thread: 55, Local: HookCount + 3}, result); diff != "" || !done {
		t.Errorf("done %v: %s", done, diff)
	}
	if _, again := m.Poll(ticket); again || m.Cancel(ticket) {
		t.Error("the ticket is still valid")
	}
}

// TestMailboxBits: a hook looks at the mailbox only while something waits for
// its family.
func TestMailboxBits(t *testing.T) {
	m, app := mustApp(t, small())
	marked := func() (families Family) {
		for f, index := range map[Family]int{AtAlloc: 0, AtLock: 16, AtIO: 32, AtStub: PointCount - 1} {
			if app.Control(index)&abi.CtlMailbox != 0 {
				families |= f
			}
		}
		return families
	}
	check := func(when string, want Family) {
		t.Helper()
		if got := marked(); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	check("new", 0)
	first := mustPost(t, m, Command{At: AtAlloc | AtIO})
	second := mustPost(t, m, Command{At: AtAlloc})
	third := mustPost(t, m, Command{At: AtStub | AtLock})
	check("three", AtAlloc|AtLock|AtIO|AtStub)
	m.Cancel(third)
	check("third cancelled", AtAlloc|AtIO)
	app.SafePoint(1, 0, uint32(AtIO))
	check("first done, not fetched", AtAlloc|AtIO)
	m.Poll(first)
	check("first fetched", AtAlloc)
	m.Cancel(second)
	check("all gone", 0)
	for i := range PointCount {
		if word := app.Control(i); word != 0 {
			t.Errorf("point %d: word %#x", i, word)
		}
	}
}

// TestMailboxOfOnePoint: a command for one function costs no other one a look.
func TestMailboxOfOnePoint(t *testing.T) {
	m, app := mustApp(t, small())
	const local = HookCount + 7
	all := mustPost(t, m, Command{At: AtStub})
	ticket := mustPost(t, m, Command{At: AtStub | AtPatch, Point: local + 1})
	c := app.Command(1)
	if *c.U32(abi.CommandPointAt) != local+1 {
		t.Errorf("point %d", *c.U32(abi.CommandPointAt))
	}
	m.Cancel(all)
	for i := range PointCount {
		if marked := app.Control(i)&abi.CtlMailbox != 0; marked != (i == local) {
			t.Errorf("point %d: marked %v", i, marked)
		}
	}
	if !m.Cancel(ticket) || app.Control(local) != 0 || c.Claim(uint32(AtStub)) {
		t.Error("not withdrawn")
	}
}

func TestMailboxFull(t *testing.T) {
	m, app := mustApp(t, small())
	tickets := make([]Ticket, 0, MailboxSize)
	for range MailboxSize {
		tickets = append(tickets, mustPost(t, m, Command{At: AtIO}))
	}
	if _, err := m.Post(Command{At: AtIO}); !errors.Is(err, ErrMailboxFull) {
		t.Errorf("got %v", err)
	}
	if ran := app.SafePoint(1, 32, uint32(AtIO)); ran != MailboxSize {
		t.Errorf("ran %d", ran)
	}
	m.Poll(tickets[3])
	mustPost(t, m, Command{At: AtIO})
}

func TestCancelClaimed(t *testing.T) {
	m, app := mustApp(t, small())
	ticket := mustPost(t, m, Command{At: AtLock})
	if !app.Command(0).Claim(uint32(AtLock)) {
		t.Fatal("not claimed")
	}
	if m.Cancel(ticket) {
		t.Error("cancelled although a thread executes it")
	}
	app.Command(0).Finish(1, 16, 9, 0)
	if r, done := m.Poll(ticket); !done || r.Value != 9 {
		t.Errorf("got %+v, %v", r, done)
	}
}

func TestPostRefuses(t *testing.T) {
	tests := []struct {
		name    string
		command Command
	}{
		{"operation", Command{Op: OpMap + 1, At: AtIO}},
		{"no family", Command{Op: OpNop}},
		{"unknown family", Command{Op: OpNop, At: 1 << familyCount}},
		{"thread", Command{Op: OpNop, At: AtIO, Thread: -1}},
		{"point", Command{Op: OpNop, At: AtStub, Point: PointCount + 1}},
	}
	m := mustNew(t, small())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := m.Post(tt.command); err == nil {
				t.Error("no error")
			}
		})
	}
}

// untilPosted waits, in fake time, for a command in the mailbox.
func untilPosted(app *dmtest.App, families Family) dmtest.Command {
	for !app.Command(0).Claim(uint32(families)) {
		time.Sleep(time.Millisecond)
	}
	return app.Command(0)
}

func TestRun(t *testing.T) {
	m, app := mustApp(t, small())
	synctest.Test(t, func(t *testing.T) {
		go func() { untilPosted(app, AtAlloc).Finish(9, 1, 123, 0) }()
		got, err := m.Run(t.Context(), Command{Op: OpCall, At: AtAlloc})
		if err != nil || got.Value != 123 || got.Thread != 9 || got.Local != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	if word := app.Control(0); word != 0 {
		t.Errorf("word %#x afterwards", word)
	}
}

func TestRunReportsErrno(t *testing.T) {
	m, app := mustApp(t, small())
	synctest.Test(t, func(t *testing.T) {
		go func() { untilPosted(app, AtAlloc).Finish(9, 1, 7, int(unix.EAGAIN)) }()
		got, err := m.Run(t.Context(), Command{Op: OpGOT, At: AtAlloc})
		if !errors.Is(err, unix.EAGAIN) || got.Value != 7 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestRunWithoutSafePoint(t *testing.T) {
	m, app := mustApp(t, small())
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := m.Run(ctx, Command{Op: OpNop, At: AtAlloc | AtIO, Thread: 12})
		if !errors.Is(err, ErrNoSafePoint) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		for _, part := range []string{"thread 12", "allocation, read or write", "3s"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not name %q", err, part)
			}
		}
	})
	if app.Command(0).Claim(uint32(AtAlloc)) || app.Control(0) != 0 {
		t.Error("the command is still there")
	}
}

// runOutOfTime runs a command whose time is over while a thread has it, which then does
// something with it.
func runOutOfTime(t *testing.T, m *Memory, app *dmtest.App, do func(dmtest.Command)) (Result, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		c := untilPosted(app, AtIO)
		cancel()
		time.Sleep(claimedGrace / 2)
		do(c)
	}()
	return m.Run(ctx, Command{At: AtIO})
}

// TestRunFinishesInGrace: a thread was executing when the time was over.
func TestRunFinishesInGrace(t *testing.T) {
	m, app := mustApp(t, small())
	synctest.Test(t, func(t *testing.T) {
		if got, err := runOutOfTime(t, m, app, func(c dmtest.Command) { c.Finish(1, 32, 4, 0) }); err != nil || got.Value != 4 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// TestRunTakesBackWhatWasGivenBack: a thread had claimed what is not for it when the time
// was over. Nobody executes the command later.
func TestRunTakesBackWhatWasGivenBack(t *testing.T) {
	m, app := mustApp(t, small())
	synctest.Test(t, func(t *testing.T) {
		if _, err := runOutOfTime(t, m, app, dmtest.Command.GiveBack); !errors.Is(err, ErrNoSafePoint) {
			t.Errorf("got %v", err)
		}
	})
	if app.Command(0).Claim(uint32(AtIO)) {
		t.Error("the command is still there")
	}
}

func TestRunOutcomeUnknown(t *testing.T) {
	m, app := mustApp(t, small())
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { untilPosted(app, AtIO); cancel() }()
		if _, err := m.Run(ctx, Command{At: AtIO}); !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
	})
	if word := app.Control(32); word != 0 {
		t.Errorf("word %#x: hooks look for a command that a thread has", word)
	}
	for range MailboxSize - 1 {
		mustPost(t, m, Command{At: AtLock})
	}
	if _, err := m.Post(Command{At: AtLock}); !errors.Is(err, ErrMailboxFull) {
		t.Errorf("the slot in use was given away: %v", err)
	}
	app.Command(0).Finish(1, 32, 4, 0)
	mustPost(t, m, Command{At: AtLock}) // now it may
	if word := app.Control(32); word != 0 {
		t.Errorf("word %#x of a family without commands", word)
	}
}

// TestAbandonedIsNotRunLater: a thread that had claimed what is not for it gives it back when
// nobody waits for the command any more, before or after the next one is there. Nobody executes
// it, and its slot is used again.
func TestAbandonedIsNotRunLater(t *testing.T) {
	for name, late := range map[string]bool{"given back before the next one": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			m, app := mustApp(t, small())
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				go func() { untilPosted(app, AtIO); cancel() }()
				if _, err := m.Run(ctx, Command{At: AtIO}); !errors.Is(err, ErrOutcomeUnknown) {
					t.Errorf("got %v", err)
				}
			})
			if !late {
				app.Command(0).GiveBack()
			}
			next := mustPost(t, m, Command{At: AtIO})
			if late {
				app.Command(0).GiveBack()
			}
			if ran := app.SafePoint(1, 32, uint32(AtIO)); ran != 1 {
				t.Errorf("%d commands ran, want the next one only", ran)
			}
			if _, done := m.Poll(next); !done {
				t.Error("the next one did not run")
			}
			for range MailboxSize {
				mustPost(t, m, Command{At: AtLock})
			}
		})
	}
}

func TestRunWhileClosed(t *testing.T) {
	m, _ := mustApp(t, small())
	synctest.Test(t, func(t *testing.T) {
		go func() {
			time.Sleep(time.Second)
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}()
		if _, err := m.Run(t.Context(), Command{At: AtIO}); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}
