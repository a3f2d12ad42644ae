// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/child"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// stubborn is a restorer that fails a few times, in turn as a whole and for one change.
type stubborn struct {
	fails int
	mu    sync.Mutex
	held  []bool // what each call was to restore
}

func (s *stubborn) Restore(_ context.Context, _ string, held bool) ([]child.Restored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = append(s.held, held)
	switch n := len(s.held); {
	case n > s.fails:
		return []child.Restored{{Change: "c1"}}, nil
	case n%2 == 0:
		return nil, errors.New("no process")
	default:
		return []child.Restored{{Change: "c0"}, {Change: "c1", Error: "it is stopped"}}, nil
	}
}

// calls returns what each call so far was to restore.
func (s *stubborn) calls() []bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.held)
}

func (*stubborn) Guard(context.Context, string, time.Duration) error { return nil }

// What could not be undone is tried again until it can be, and then no more. What was held
// stays to be undone meanwhile.
func TestFailedRestoreIsTriedAgain(t *testing.T) {
	for _, held := range []bool{false, true} {
		inBubble(t, func(b *bench) {
			mustLeave(b.t, b.journals.dir)
			restorer := &stubborn{fails: 2}
			b.journals.children = restorer
			ctx, end := context.WithCancel(b.t.Context())
			go b.journals.restoreOwed(ctx) // until the end of the bubble
			defer end()
			b.journals.restore(ctx, held)
			for tries := 2; tries <= 3; tries++ {
				time.Sleep(owedInterval << (tries - 2))
				synctest.Wait()
				if calls := restorer.calls(); len(calls) != tries || calls[tries-1] != held {
					b.t.Fatalf("tried %v, want %d times with %v", calls, tries, held)
				}
			}
			time.Sleep(time.Hour)
			if n := len(restorer.calls()); n != 3 {
				b.t.Errorf("tried %d times, though the last one was good", n)
			}
			if _, troubles := b.notes.current(); len(troubles) > 1 {
				b.t.Errorf("troubles %q, want each told once", troubles)
			}
		})
	}
}

// unreadable is a restorer that can read no journal.
type unreadable struct{ stuck }

func (unreadable) Restore(context.Context, string, bool) ([]child.Restored, error) {
	return []child.Restored{{Error: "no permission"}}, nil
}

// A journal that cannot be read is tried again, and is no change.
func TestUnreadableJournalIsNoChange(t *testing.T) {
	inBubble(t, func(b *bench) {
		mustLeave(b.t, b.journals.dir)
		var log strings.Builder
		b.journals.log, b.journals.children = slog.New(slog.NewTextHandler(&log, nil)), unreadable{}
		b.journals.restore(b.t.Context(), false)
		const want = `level=WARN msg="journals could not be read or written" error="no permission"`
		if got := log.String(); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 || !b.journals.owed.Load() {
			b.t.Errorf("logged %q, owed %v", got, b.journals.owed.Load())
		}
	})
}

// stuck undoes nothing for as long as it may.
type stuck struct{}

func (stuck) Restore(ctx context.Context, _ string, _ bool) ([]child.Restored, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (stuck) Guard(context.Context, string, time.Duration) error { return nil }

// TestNodeEndsWithinATry: the node's end, which gives everything back, does not wait for what
// could not be undone before.
func TestNodeEndsWithinATry(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.journals.children = stuck{}
		b.journals.owed.Store(true)
		ctx, end := context.WithCancel(b.t.Context())
		done := make(chan struct{})
		go func() { defer close(done); b.journals.restoreOwed(ctx) }()
		time.Sleep(owedInterval)
		synctest.Wait()
		end()
		synctest.Wait()
		select {
		case <-done:
		default:
			b.t.Error("a try goes on")
		}
	})
}

// mustLeave has a dead controller leave a journal, and returns its path.
func mustLeave(t *testing.T, dir string) string {
	t.Helper()
	journal, err := actuate.OpenJournal(dir, "1")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(dir + "/*")
	if err != nil || len(paths) != 1 {
		t.Fatalf("%q, %v", paths, err)
	}
	if err := journal.Close(); err != nil { // removes it, since it is empty
		t.Fatal(err)
	}
	files.Write(t, paths[0], "", 0o600)
	return paths[0]
}

// A node removes the journals of earlier boots, and counts only those that it can restore.
func TestJournalsOfEarlierBoots(t *testing.T) {
	inBubble(t, func(b *bench) {
		dir := b.journals.dir
		path := mustLeave(b.t, dir)
		if !b.journals.present() {
			b.t.Error("a journal of this boot is not present")
		}
		parts := strings.Split(path, ".")
		elsewhere, before := slices.Clone(parts), slices.Clone(parts)
		elsewhere[len(parts)-2], before[len(parts)-3] = "4711", "a-boot"
		if err := os.Rename(path, strings.Join(elsewhere, ".")); err != nil {
			b.t.Fatal(err)
		}
		files.Write(b.t, strings.Join(before, "."), "", 0o600)
		if b.journals.present() {
			b.t.Error("journals that no restore looks at are present")
		}
		b.journals.removeOld()
		left, err := filepath.Glob(dir + "/*")
		if want := []string{strings.Join(elsewhere, ".")}; err != nil || !slices.Equal(left, want) {
			b.t.Errorf("left %q, want %q, %v", left, want, err)
		}
	})
}
