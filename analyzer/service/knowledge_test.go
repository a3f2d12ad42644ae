// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/store"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func mustStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "knowledge.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestUsersLearnApart: what one user's sessions have learnt of a program does not
// reach another's.
func TestUsersLearnApart(t *testing.T) {
	all := mustStore(t)
	ann, bob := &attunev1.Principal{Uid: 1001}, &attunev1.Principal{Uid: 1002}
	trial := store.Trial{Advice: "a1", Application: "sum", Executable: "/bin/solver", Tunlet: "malloc", Result: store.Kept, Gain: 3, At: time.Now()}
	trials := []store.Trial{trial}
	if err := knowledgeOf(ann, all).Record(t.Context(), trials); err != nil {
		t.Fatal(err)
	}
	if trials[0].Application != "sum" {
		t.Errorf("the caller's trial was changed: %+v", trials[0])
	}
	for _, tt := range []struct {
		user *attunev1.Principal
		want int
	}{{ann, 1}, {bob, 0}} {
		known, err := knowledgeOf(tt.user, all).Known(t.Context(), "sum")
		if err != nil || len(known) != tt.want {
			t.Errorf("user %d: %v, %v, want %d", tt.user.GetUid(), known, err, tt.want)
		}
	}
	if knowledgeOf(nil, all) != nil || knowledgeOf(ann, nil) != nil {
		t.Error("there is knowledge of nobody, or in nothing")
	}
}

// asked is a Knowledge that says what it is asked for.
type asked chan string

func (a asked) Known(_ context.Context, application string) ([]store.Advice, error) {
	a <- application
	return nil, nil
}

func (asked) Record(context.Context, []store.Trial) error { return nil }

// TestSessionsAskWhatIsKnown: a session asks for its user's knowledge of a program.
func TestSessionsAskWhatIsKnown(t *testing.T) {
	p := newPlace(t)
	knowledge := make(asked, 8)
	a := p.analyzer("a", func(c *Config) { c.Knowledge = knowledge })
	ann := p.people(p.pki.User(t, "ann", annUID), a)
	id := register(t, a, ann, &attunev1.Registration{Executable: "solver", Mode: "tune"})
	c := p.dial(a, hello("n1", id, job))
	c.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{
		Handle: 1, Identity: &attunev1.ProcessIdentity{Pid: 1}, Uid: annUID, Executable: "/bin/solver", ExecutableSha256: "sum",
	}}})
	got := patience.Receive(t, "question", knowledge)
	if want := (userKnowledge{uid: c.hello.GetUser().GetUid()}).of("sum"); got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
}
