// SPDX-License-Identifier: Apache-2.0

package track

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// still is a source whose events the test hands over itself.
type still struct{ Source }

func (still) Add(int) error    { return nil }
func (still) Remove(int) error { return nil }
func (still) Lost() uint64     { return 0 }

// told keeps what a Handler is told.
type told struct {
	started []*attunev1.Process
	held    []*procid.Process
	ended   []*attunev1.ProcessEnded
}

func (h *told) Started(p *attunev1.Process, held *procid.Process) {
	h.started, h.held = append(h.started, p), append(h.held, held)
}
func (h *told) Changed(*attunev1.Process)          {}
func (h *told) Ended(ended *attunev1.ProcessEnded) { h.ended = append(h.ended, ended) }

// mustState returns a state whose goroutine is the test's, and what its Handler was told.
func mustState(t *testing.T, options Options) (*state, *told) {
	t.Helper()
	h := new(told)
	options.Handler = h
	options, err := options.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := newState(options, slog.New(slog.DiscardHandler), new(atomic.Bool), "host", "boot", 0, 0)
	t.Cleanup(s.close)
	return s, h
}

// mustLateReaders returns helpers that answer nothing before come was called.
func mustLateReaders(t *testing.T) (by *readers.Pool, come func()) {
	t.Helper()
	helper := filepath.Join(t.TempDir(), "helper")
	err := os.Chmod(filepath.Dir(filepath.Dir(helper)), 0o755) // helpers are nobody's
	if err := errors.Join(err, targets.WriteProgram(helper, []byte("#!/bin/sh\nexec head -c 1 >/dev/null\n"))); err != nil {
		t.Fatal(err)
	}
	by = readers.New(readers.Options{Command: []string{helper, readers.Argument}, Pause: time.Nanosecond})
	t.Cleanup(func() { _ = by.Close() })
	return by, func() {
		if err := errors.Join(os.Remove(helper), os.Symlink("/proc/self/exe", helper)); err != nil {
			t.Fatal(err)
		}
		patience.Until(t, "its user is not refused any more", func() bool { return len(by.Refused()) == 0 })
	}
}

// TestUnreadableForAWhile: a process that could not be looked at when it was told of lives on
// all the same. It is looked at when that is possible, and nothing that it does then is lost.
func TestUnreadableForAWhile(t *testing.T) {
	by, come := mustLateReaders(t)
	s, h := mustState(t, Options{JobID: "unreadable", Source: still{}, Readers: by})
	target := targets.Launch(t, exec.Command("sleep", "600"))
	stat, err := procid.ReadStat(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	of := func(kind Kind) Event {
		return Event{Kind: kind, PID: target.PID, Member: true, Last: kind == Exit, Time: monotonic(), StartTicks: stat.StartTicks}
	}
	s.event(of(Exec))
	for range 3 {
		s.scanner.scan()
	}
	if len(h.started) != 1 || h.held[0] != nil || len(h.ended) != 0 {
		t.Fatalf("told of %v, ends %v", h.started, h.ended)
	}
	come()
	s.scanner.scan()
	if len(h.started) != 2 || h.held[1] == nil || len(h.ended) != 1 || !h.ended[0].GetReplacedByExec() {
		t.Fatalf("told of %v, ends %v", h.started, h.ended)
	}
	again := of(Exec)
	again.Time += 2 * uint64(sameExec)
	s.event(again)
	if len(h.started) != 3 {
		t.Errorf("an exec is lost: told of %v", h.started)
	}
	target.Kill()
	s.event(of(Exit))
	if len(h.ended) != 3 || h.ended[2].GetReplacedByExec() {
		t.Errorf("an exit is lost: ends %v", h.ended)
	}
}

// leaving is a source that keeps whom it follows no more.
type leaving struct {
	still
	removed []int
}

func (l *leaving) Remove(pid int) error {
	l.removed = append(l.removed, pid)
	return nil
}

// TestUnreadableIsNotFollowed: of a process that could not be followed the source tells no more.
func TestUnreadableIsNotFollowed(t *testing.T) {
	by, _ := mustLateReaders(t)
	source := new(leaving)
	s, h := mustState(t, Options{JobID: "unreadable", Source: source, Readers: by})
	target := targets.Launch(t, exec.Command("sleep", "600"))
	if _, err := s.follow(target.PID, nil); err == nil || len(h.started) != 0 {
		t.Fatalf("followed: %v, told of %v", err, h.started)
	}
	if !slices.Equal(source.removed, []int{target.PID}) || s.members.has(target.PID) {
		t.Errorf("the source follows no more %v, want %d", source.removed, target.PID)
	}
}

// TestDigestAskedForAgain: an executable that could not be read for a moment has its digest at
// the next look.
func TestDigestAskedForAgain(t *testing.T) {
	by, come := mustLateReaders(t)
	s, h := mustState(t, Options{JobID: "unreadable"})
	s.hasher.readers = by
	target := targets.Launch(t, exec.Command("cat"))
	target.Ask(t, "it runs")
	if _, err := s.follow(target.PID, nil); err != nil {
		t.Fatal(err)
	}
	m := s.members.byPID[target.PID]
	for _, want := range []bool{false, true} {
		if want {
			come()
		}
		s.refresher.refresh(m, false)
		if len(s.hasher.requests) != 1 {
			t.Fatalf("%d digests are asked for, want 1", len(s.hasher.requests))
		}
		s.refresher.digest(s.hasher.hash(t.Context(), <-s.hasher.requests))
		if got := m.message.GetExecutableSha256() != ""; got != want {
			t.Errorf("has a digest: %v, want %v; %v", got, want, h.started)
		}
	}
}
