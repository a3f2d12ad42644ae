// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/attune-hpc/attune/internal/sqlfile"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func mustOpen(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func change(process uint64) *attunev1.Change {
	return &attunev1.Change{Id: "c1", Process: process, Knob: "k", Action: &attunev1.Action{
		Kind: &attunev1.Action_System{System: &attunev1.SystemSetting{
			Name: "pipe.size", Value: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: 1 << 20}},
		}},
	}}
}

func trial(advice, application string, result Result, gain float64, at int) Trial {
	return Trial{
		Advice: advice, Application: application, Executable: "/bin/app", Tunlet: "pipe", Why: "slow",
		Changes: []*attunev1.Change{change(7)}, Predicted: 3, Confidence: 0.5, Result: result, Gain: gain, At: time.Unix(int64(at), 0),
	}
}

func TestKnowledgeLasts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "knowledge.db")
	s := mustOpen(t, path)
	trials := []Trial{
		trial("aa11", "x", Given, 0, 1), trial("aa11", "x", Kept, 2.5, 2), trial("aa11", "x", Undone, 0.9, 3),
		trial("bb22", "x", Kept, 4, 4), trial("aa11", "y", Given, 0, 5),
	}
	if err := s.Record(t.Context(), trials); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	known, err := mustOpen(t, path).Known(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	wanted := change(0)
	wanted.Id = ""
	want := []Advice{
		{ID: "bb22", Gain: 4, Kept: 1, First: time.Unix(4, 0), Last: time.Unix(4, 0)},
		{ID: "aa11", Gain: 0.9, Given: 1, Kept: 1, Undone: 1, First: time.Unix(1, 0), Last: time.Unix(3, 0)},
	}
	for i := range want {
		want[i].Application, want[i].Executable, want[i].Tunlet, want[i].Why = "x", "/bin/app", "pipe", "slow"
		want[i].Predicted, want[i].Confidence, want[i].Changes = 3, 0.5, []*attunev1.Change{wanted}
	}
	if diff := cmp.Diff(want, known, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v %v", info.Mode(), err)
	}
}

func TestFind(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "knowledge.db"))
	if err := s.Record(t.Context(), []Trial{trial("aa11", "x", Given, 0, 1), trial("aa22", "x", Given, 0, 2), trial("aa22", "y", Given, 0, 3)}); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Find(t.Context(), "aa2"); err != nil || len(found) != 2 || found[0].Application != "y" {
		t.Errorf("%v %v", found, err)
	}
	for _, id := range []string{"", "aa", "cc", "a*", "' OR 1"} {
		if found, err := s.Find(t.Context(), id); !errors.Is(err, ErrUnknownAdvice) {
			t.Errorf("%q: %v %v", id, found, err)
		}
	}
	if err := s.Forget(t.Context(), "aa22"); err != nil {
		t.Fatal(err)
	}
	if all, err := s.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
}

func TestByHand(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "knowledge.db"))
	if err := s.Applied(t.Context(), "aa11", "n1", []string{"3", "4"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Settled(t.Context(), "n1", []string{"3"}); err != nil {
		t.Fatal(err)
	}
	got, err := s.ByHand(t.Context(), "aa11", "n1")
	if err != nil || !slices.Equal(got, []string{"4"}) {
		t.Errorf("%v %v", got, err)
	}
	if got, err := s.ByHand(t.Context(), "aa11", "n2"); err != nil || len(got) > 0 {
		t.Errorf("of another node: %v %v", got, err)
	}
}

// Several sessions end at one time.
func TestConcurrentSessions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "knowledge.db")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			s, err := open(context.Background(), path, patience.Limit)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for n := range 10 {
				if err := s.Record(context.Background(), []Trial{trial("aa11", "x", Kept, 2, n)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if known, err := mustOpen(t, path).Known(t.Context(), "x"); err != nil || len(known) != 1 || known[0].Kept != 80 {
		t.Errorf("%v %v, want 80 times kept", known, err)
	}
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	newer := filepath.Join(dir, "newer.db")
	s := mustOpen(t, newer)
	if _, err := s.db.ExecContext(t.Context(), "PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), newer); !errors.Is(err, sqlfile.ErrNewer) {
		t.Errorf("newer: %v", err)
	}
	damaged := filepath.Join(dir, "damaged.db")
	files.Write(t, damaged, "this is no database at all, but long enough to look at", 0o600)
	if _, err := Open(t.Context(), damaged); err == nil {
		t.Error("a damaged file was opened")
	}
	if _, err := Open(t.Context(), filepath.Join(dir, "missing", "x.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

// TestKnowledgeOfAUser: however much one user's sessions learn, what another's have learnt
// is known.
func TestKnowledgeOfAUser(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "knowledge.db"))
	s.most = 100
	trials := []Trial{trial("aa11", "solver@4711", Kept, 2, 0)}
	for n := range s.most + 10 {
		trials = append(trials, trial(fmt.Sprintf("b%d", n), fmt.Sprintf("bomb%d@4712", n), Kept, 2, n+1))
	}
	if err := s.Record(t.Context(), trials); err != nil {
		t.Fatal(err)
	}
	for application, want := range map[string]int{"solver@4711": 1, "bomb0@4712": 0, fmt.Sprintf("bomb%d@4712", s.most+9): 1} {
		if known, err := s.Known(t.Context(), application); err != nil || len(known) != want {
			t.Errorf("%s: %v %v, want %d", application, known, err, want)
		}
	}
}

// TestSynchronous: the journal is on the disk before the file is written, or a power cut damages
// the file.
func TestSynchronous(t *testing.T) {
	var level int
	s := mustOpen(t, filepath.Join(t.TempDir(), "knowledge.db"))
	if err := s.db.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&level); err != nil || level != 2 { // full
		t.Errorf("level %d, %v; want 2", level, err)
	}
}
