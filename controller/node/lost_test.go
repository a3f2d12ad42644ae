// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attune-hpc/attune/controller/child"
)

// A session whose controller is lost is given up for good: it is said once, its
// processes are not taken again, and others are.
func TestLostSession(t *testing.T) {
	pids, _ := mustStart(t, 2)
	inBubble(t, func(b *bench) {
		c := b.mustOffer("1", 1000, pids[0])
		close(c.lost)
		synctest.Wait()
		if len(b.sessions.list()) != 0 || c.hasStopped() {
			t.Fatal("the session goes on, or is asked to give back what it has")
		}
		if _, troubles := b.notes.current(); len(troubles) != 1 || !strings.Contains(troubles[0].GetText(), "signal: killed") {
			t.Errorf("troubles %q", troubles)
		}
		b.after(lostTime - time.Minute)
		if _, err := b.offer("1", 1000, pids[0]); err == nil {
			t.Error("it is taken again")
		}
		b.mustOffer("2", 1000, pids[1])
		if len(b.made) != 2 {
			t.Errorf("%d controllers, want 2", len(b.made))
		}
	})
}

// A session that cannot give everything back is told of, and what its journal has is tried
// once more.
func TestSessionThatCannotGiveBack(t *testing.T) {
	pids, _ := mustStart(t, 1)
	inBubble(t, func(b *bench) {
		c := b.mustOffer("1", 1000, pids[0])
		c.stays = errors.New("the pipe is full")
		mustLeave(b.t, b.journals.dir)
		c.end()
		b.after(idleLooks*lookInterval + restorePatience) // nobody serves it here
		_, troubles := b.notes.current()
		if len(troubles) != 2 || !strings.Contains(troubles[0].GetText(), "could not give everything back: the pipe is full") || !strings.Contains(troubles[1].GetText(), "restore after a controller") {
			t.Errorf("troubles %q", troubles)
		}
	})
}

// What stays in force after a session is told if anything does, and what does not in any
// case.
func TestWhatIsKept(t *testing.T) {
	pids, _ := mustStart(t, 1)
	for _, tt := range []struct {
		ids         []string
		stays, back bool
	}{
		{[]string{"kept"}, true, false},
		{[]string{"kept", "lost"}, true, true},
		{[]string{"lost"}, false, true},
		{nil, false, false},
	} {
		inBubble(t, func(b *bench) {
			c := b.mustOffer("1", 1000, pids[0])
			var log bytes.Buffer
			b.sessions.list()[0].log = slog.New(slog.NewTextHandler(&log, nil))
			c.config.Over(tt.ids, errors.New("it is done"))
			synctest.Wait()
			said := log.String()
			if stays, back := strings.Contains(said, "changes stay in force"), strings.Contains(said, "changes are given back"); stays != tt.stays || back != tt.back {
				t.Errorf("%q: some stay: %v, some are given back: %v", tt.ids, stays, back)
			}
		})
	}
}

// A user whose sessions are lost one after the other has none any more, and another
// user has.
func TestUserWhoseSessionsAreLost(t *testing.T) {
	pids, _ := mustStart(t, 1)
	inBubble(t, func(b *bench) {
		for n := range maxLost {
			close(b.mustOffer(strconv.Itoa(n), 1000, pids[0]).lost)
			synctest.Wait()
		}
		if _, err := b.offer("more", 1000, pids[0]); !errors.Is(err, errLost) {
			t.Errorf("one more: %v", err)
		}
		b.mustOffer("1", 1001, pids[0])
	})
}

// A controller whose process ends while it begins is lost, too.
func TestControllerLostAtItsBeginning(t *testing.T) {
	pids, _ := mustStart(t, 1)
	inBubble(t, func(b *bench) {
		tries := 0
		b.refuse = func() error { tries++; return fmt.Errorf("%w: it panics", child.ErrLost) }
		if _, err := b.offer("1", 1000, pids[0]); err != nil {
			t.Fatal(err)
		}
		if b.after(time.Hour) != 0 || tries != 1 {
			t.Errorf("%d sessions after %d tries, want none after one", len(b.sessions.list()), tries)
		}
	})
}

// A node that ends while a controller begins has lost none, whatever comes of it.
func TestEndWhileAControllerBegins(t *testing.T) {
	pids, _ := mustStart(t, 1)
	for _, why := range []error{child.ErrLost, errors.New("no answer")} {
		inBubble(t, func(b *bench) {
			b.starting = func(ctx context.Context) error {
				<-ctx.Done()
				return why
			}
			s, err := b.offer("1", 1000, pids[0])
			if err != nil || len(b.made) != 1 || isClosed(s.ready) {
				t.Fatalf("%v; %d controllers, want one that begins", err, len(b.made))
			}
			b.workers.end()
			if _, troubles := b.notes.current(); len(troubles) > 0 {
				t.Errorf("troubles %q", troubles)
			}
		})
	}
}

// A controller that cannot be made is tried again for as long as its process
// lives, which is followed then.
func TestControllerThatCannotStart(t *testing.T) {
	pids, end := mustStart(t, 2)
	full := errors.New("no space left on device")
	inBubble(t, func(b *bench) {
		var tries, room atomic.Int32
		room.Store(4)
		b.refuse = func() error {
			if tries.Add(1) < room.Load() {
				return full
			}
			return nil
		}
		s, err := b.offer("1", 1000, pids[0])
		if err != nil {
			t.Fatal(err)
		}
		b.after(2 * retryInterval)
		if n := tries.Load(); n != 3 || isClosed(s.ready) {
			t.Errorf("%d tries after %v, want 3", n, 2*retryInterval)
		}
		if _, troubles := b.notes.current(); len(troubles) != 3 || !strings.Contains(troubles[0].GetText(), full.Error()) {
			t.Errorf("told: %q", troubles)
		}
		b.after(retryInterval)
		if len(b.made) != 1 || len(b.made[0].followed) != 1 {
			t.Fatal("the process is not followed once there is room")
		}
		room.Store(1000)
		if _, err := b.offer("2", 1000, pids[1]); err != nil {
			t.Fatal(err)
		}
		end(1)
		if b.after(retryInterval) != 1 { // the first one's
			t.Error("a session without controller outlives its process")
		}
	})
}
