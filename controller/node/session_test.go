// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// One user has so many sessions and not one more, until one has ended. Others
// are not concerned, and root is not bounded.
func TestSessionsOfAUserAreBounded(t *testing.T) {
	pids, _ := mustStart(t, maxSessionsOfUser+3)
	inBubble(t, func(b *bench) {
		for n := range maxSessionsOfUser {
			b.mustOffer(strconv.Itoa(n), 1000, pids[n])
		}
		another := pids[maxSessionsOfUser]
		if _, err := b.offer("more", 1000, another); !errors.Is(err, errTooMany) {
			t.Errorf("one session more: %v, want %v", err, errTooMany)
		}
		answer := httptest.NewRecorder()
		b.config.Metrics.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		for _, want := range []string{`attune_node_processes_refused_total{reason="too_many_sessions"} 1`, fmt.Sprint("attune_node_sessions ", maxSessionsOfUser)} {
			if !strings.Contains(answer.Body.String(), "\n"+want+"\n") {
				t.Errorf("without %s", want)
			}
		}
		b.mustOffer("0", 1000, pids[maxSessionsOfUser+1]) // of a session that is there
		b.mustOffer("more", 1001, pids[maxSessionsOfUser+2])
		b.made[1].end()
		b.after(idleLooks * lookInterval)
		b.mustOffer("more", 1000, another)
	})
	inBubble(t, func(b *bench) {
		for n, pid := range pids {
			b.mustOffer(strconv.Itoa(n), 0, pid)
		}
	})
}

// A process has one controller, whoever hands it over how often.
func TestProcessBelongsToOneSession(t *testing.T) {
	pids, _ := mustStart(t, 1)
	inBubble(t, func(b *bench) {
		c := b.mustOffer("1", 1000, pids[0])
		if b.mustOffer("1", 1000, pids[0]) != c || len(c.followed) != 1 {
			t.Errorf("given twice, it is followed %d times", len(c.followed))
		}
		if _, err := b.offer("2", 1000, pids[0]); err == nil || !strings.Contains(err.Error(), "belongs to the session") {
			t.Errorf("given to another session: %v", err)
		}
	})
}

// A session whose processes have ended waits for others for a moment, and ends.
func TestIdleSessionEnds(t *testing.T) {
	pids, _ := mustStart(t, 2)
	inBubble(t, func(b *bench) {
		c := b.mustOffer("1", 1000, pids[0])
		if b.after(time.Hour) != 1 || c.hasStopped() {
			t.Fatal("a session with a process has ended")
		}
		c.end()
		if b.after((idleLooks-1)*lookInterval) != 1 {
			t.Fatal("it does not wait for other processes")
		}
		if b.mustOffer("1", 1000, pids[1]) != c || b.after(time.Hour) != 1 {
			t.Fatal("another process does not keep it")
		}
		c.end()
		if b.after(idleLooks*lookInterval) != 0 || !c.hasStopped() {
			t.Error("it does not end, or gives nothing back")
		}
	})
}

// A session whose registration was withdrawn waits for its Analyzer's word for a
// while; one of which the registry has never known goes on.
func TestWithdrawnSessionEnds(t *testing.T) {
	const within = withdrawnLooks * lookInterval
	pids, _ := mustStart(t, 1)
	inBubble(t, func(b *bench) {
		c := b.mustOffer("1", 1000, pids[0])
		if b.after(2*within) != 1 {
			t.Fatal("it has ended though it was never registered")
		}
		known := registry.View{Registrations: map[string]*attunev1.Registration{"r": {Id: "r"}}}
		for range 2 { // the registry may lose it, and have it again
			b.setView(known)
			b.after(within)
			b.setView(registry.View{})
			if b.after(within-lookInterval) != 1 {
				t.Fatal("it does not wait for its Analyzer")
			}
		}
		if b.after(lookInterval) != 0 || !c.hasStopped() {
			t.Error("it does not end, or gives nothing back")
		}
	})
}

// A registration may change while its Analyzer is away, and its sessions go on: what may be changed
// in their processes is what it asks for by then.
func TestRegistrationOfTheDay(t *testing.T) {
	all, err := policy.Parse("policy.yaml", []byte("service:\n  - mode: tune\n"))
	if err != nil {
		t.Fatal(err)
	}
	pids, _ := mustStart(t, 1)
	inBubble(t, func(b *bench) {
		b.policy, b.mode = all, "observe"
		c := b.mustOffer("1", 1000, pids[0])
		for _, tt := range []struct {
			registered map[string]*attunev1.Registration
			untouched  bool
		}{
			{nil, true}, // what it began with holds
			{map[string]*attunev1.Registration{"r": {Id: "r", Mode: "tune", Owner: authn.OfUser(1000)}}, false},
			{map[string]*attunev1.Registration{"r": {Id: "r", Mode: "observe"}}, true},
		} {
			b.setView(registry.View{Registrations: tt.registered})
			if why := c.config.Untouched(""); (why != "") != tt.untouched {
				t.Errorf("registered: %v: untouched because %q, want %v", tt.registered, why, tt.untouched)
			}
		}
	})
}

// What the Analyzer has ended is not taken again for a while, and then it is: the
// Analyzer is asked once more.
func TestUnwantedSession(t *testing.T) {
	pids, _ := mustStart(t, 2)
	inBubble(t, func(b *bench) {
		c := b.mustOffer("1", 1000, pids[0])
		c.config.Over(nil, errors.New("stopped by its owner"))
		synctest.Wait()
		if len(b.sessions.list()) != 0 || !c.hasStopped() {
			t.Fatal("the session does not end at the Analyzer's word")
		}
		b.mustOffer("2", 1000, pids[1]) // which the Analyzer said nothing of
		b.after(overTime)
		if _, err := b.offer("1", 1000, pids[0]); err == nil {
			t.Error("it is taken at once")
		}
		b.mode = "observe"
		b.mustOffer("1", 1000, pids[0]) // for the registration is another one by now
		b.made[2].config.Over(nil, errors.New("its registration has changed"))
		b.after(overTime + 1)
		if b.mustOffer("1", 1000, pids[0]) == c {
			t.Error("it has the controller of before")
		}
	})
}

// Processes that come while others are being followed are followed too, once
// each, and in their order.
func TestFollowWhileProcessesCome(t *testing.T) {
	pids, _ := mustStart(t, 10)
	inBubble(t, func(b *bench) {
		c := b.mustOffer("1", 1000, pids[0])
		next := 2
		c.following = func() error {
			if next < len(pids) {
				next++
				if _, err := b.give("1", 1000, pids[next-1]); err != nil {
					t.Error(err)
				}
			}
			return nil
		}
		b.mustOffer("1", 1000, pids[1])
		if len(c.followed) != len(pids) {
			t.Fatalf("%d processes are followed, want %d", len(c.followed), len(pids))
		}
		for n, identity := range c.followed {
			if identity.PID != pids[n] {
				t.Errorf("process %d was followed as number %d, want %d", identity.PID, n, pids[n])
			}
		}
		if s := b.sessions.list()[0]; len(s.waiting) != 0 {
			t.Errorf("%d still wait", len(s.waiting))
		}
	})
}

// Switched off, a node ends its sessions and takes nobody; switched on, it does.
func TestSwitchedOff(t *testing.T) {
	pids, _ := mustStart(t, 1)
	inBubble(t, func(b *bench) {
		c := b.mustOffer("1", 1000, pids[0])
		b.mainSwitch.turn("maintenance", true)
		if b.after(0) != 0 || !c.hasStopped() {
			t.Error("the session does not end, or gives nothing back")
		}
		if _, err := b.offer("1", 1000, pids[0]); err == nil || !strings.Contains(err.Error(), "maintenance") {
			t.Errorf("offered a process: %v", err)
		}
		b.mainSwitch.turn("", false)
		b.mustOffer("1", 1000, pids[0])
	})
}

// Once the node ends it takes no process and tells no Analyzer: nobody would wait for
// what that starts.
func TestNothingBeginsAtTheEnd(t *testing.T) {
	pids, _ := mustStart(t, 2)
	inBubble(t, func(b *bench) {
		c := b.mustOffer("1", 1000, pids[0])
		b.workers.end()
		if !c.hasStopped() {
			t.Error("the node has ended before its session")
		}
		for _, job := range []string{"1", "2"} {
			if _, err := b.offer(job, 1000, pids[1]); !errors.Is(err, errClosed) {
				t.Errorf("offered a process of job %s: %v, want %v", job, err, errClosed)
			}
		}
		b.registrations.analyzers = func(context.Context) ([]*attunev1.AnalyzerRecord, error) {
			t.Error("an Analyzer is looked for")
			return nil, errors.New("away")
		}
		b.registrations.register(&attunev1.Registration{Id: "slurm-12-1000"}, always)
		synctest.Wait()
	})
}

// A process whose belongings cannot be read yet waits, and its session with it, until they
// can or it has ended. One that is the cause is tried behind the others.
func TestFollowWhatCannotBeReadYet(t *testing.T) {
	pids, end := mustStart(t, 4)
	inBubble(t, func(b *bench) {
		c := b.mustOffer("1", 1000, pids[0])
		var tries, readable atomic.Int32
		c.following = func() error {
			if tries.Add(1); readable.Load() == 0 {
				return fmt.Errorf("seen: %w", readers.ErrRefused)
			}
			return nil
		}
		for _, pid := range pids[1:] {
			b.mustOffer("1", 1000, pid)
		}
		c.end()
		tries.Store(0)
		if b.after(2*lookInterval) != 1 || len(c.followed) != 1 || tries.Load() != 2 {
			t.Fatalf("followed %v after %d tries, want one at each look", c.followed, tries.Load())
		}
		end(3)
		if b.after(time.Minute) != 1 || len(b.sessions.waiting(b.sessions.list()[0])) != 2 {
			t.Error("one that has ended waits")
		}
		readable.Store(1)
		b.after(lookInterval)
		var followed []int
		for _, identity := range c.followed[1:] {
			followed = append(followed, identity.PID)
		}
		slices.Sort(followed)
		if waiting := b.sessions.waiting(b.sessions.list()[0]); len(waiting) != 0 || !slices.Equal(followed, pids[1:3]) {
			t.Errorf("followed %v, want %v; %d wait", followed, pids[1:3], len(waiting))
		}
	})
}

// Those that wait cost a descriptor each: one user's are bounded, over all their sessions,
// and take nothing from another user.
func TestTooManyWait(t *testing.T) {
	pids, _ := mustStart(t, 4)
	inBubble(t, func(b *bench) {
		c := b.mustOffer("1", 1000, pids[0])
		c.following = func() error { return readers.ErrRefused }
		b.mustOffer("1", 1000, pids[1])
		s := b.sessions.list()[0]
		b.sessions.mu.Lock()
		full := s.waiting
		s.waiting = slices.Repeat(full[:1], maxWaitingOfUser)
		b.sessions.mu.Unlock()
		if _, err := b.offer("2", 1000, pids[2]); !errors.Is(err, errTooManyWait) {
			t.Errorf("one more: %v", err)
		}
		b.mustOffer("1", 1001, pids[3])
		b.sessions.mu.Lock()
		s.waiting = full
		b.sessions.mu.Unlock()
	})
}
