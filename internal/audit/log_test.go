// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/queue"
	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/internal/testing/files"
)

func mustOpen(t *testing.T, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) // again, where the test did
	return l
}

func mustSync(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// mustRead returns the lines of a file; each has to be an entry.
func mustRead(t *testing.T, path string) []Entry {
	t.Helper()
	entries, broken := read(t, path)
	if broken > 0 {
		t.Fatalf("%s: %d lines are no entries", path, broken)
	}
	return entries
}

func read(t *testing.T, path string) (entries []Entry, broken int) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var e Entry
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			broken++
			continue
		}
		entries = append(entries, e)
	}
	return entries, broken
}

// mustCount checks that lines are numbered without gaps from first on.
func mustCount(t *testing.T, entries []Entry, first uint64) {
	t.Helper()
	for n, e := range entries {
		if e.Number != first+uint64(n) {
			t.Fatalf("line %d has number %d, want %d", n, e.Number, first+uint64(n))
		}
	}
}

func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := mustOpen(t, Options{Path: path})
	var writers sync.WaitGroup
	for range 20 {
		writers.Go(func() {
			for range 50 {
				l.Write(Entry{Event: Asked, What: "something"})
				if err := l.Sync(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	entries := mustRead(t, path)
	mustCount(t, entries, 1)
	if n := len(entries); n != 1002 || entries[0].Event != Started || entries[n-1].Event != Ended {
		t.Errorf("%d lines from %s to %s", n, entries[0].Event, entries[n-1].Event)
	}
	if e := entries[1]; e.Call != e.Number || e.Time.IsZero() {
		t.Errorf("%+v: a call is named by its first line", e)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: it is for its owner", info.Mode(), err)
	}
	if l.Write(Entry{Event: Asked}) != 0 {
		t.Error("a line is written after Close")
	}
}

// TestCutLine: what a crash has cut off does not swallow the line after it.
func TestCutLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	files.Write(t, path, `{"n":1}`+"\n"+`{"n":2,"ti`, 0o600)
	if err := mustOpen(t, Options{Path: path}).Close(); err != nil {
		t.Fatal(err)
	}
	entries, broken := read(t, path)
	if broken != 1 || len(entries) != 3 || entries[1].Event != Started {
		t.Errorf("%d broken, %+v", broken, entries)
	}
}

// TestMoved: logrotate takes the file away, in each of its ways.
func TestMoved(t *testing.T) {
	tests := []struct {
		name string
		take func(path string) error
	}{
		{"moved", func(path string) error { return os.Rename(path, path+".1") }},
		{"removed", os.Remove},
		{"cut", func(path string) error { return os.Truncate(path, 0) }},
		{"replaced", func(path string) error {
			if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			l := mustOpen(t, Options{Path: path})
			l.Write(Entry{Event: Asked, What: "before"})
			mustSync(t, l)
			if err := tt.take(path); err != nil {
				t.Fatal(err)
			}
			l.Write(Entry{Event: Asked, What: "after"})
			mustSync(t, l)
			if entries := mustRead(t, path); len(entries) != 1 || entries[0].What != "after" {
				t.Errorf("%+v", entries)
			}
		})
	}
}

func TestRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	foreign := path + ".backup"
	files.Write(t, foreign, "", 0o600)
	l := mustOpen(t, Options{Path: path, maxBytes: 4096, keep: 3})
	for range 1000 {
		l.Write(Entry{Event: Asked, What: strings.Repeat("x", 100)})
		mustSync(t, l)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	old, err := (&writer{path: path}).old()
	if err != nil || len(old) != 3 {
		t.Fatalf("old files %q, %v", old, err)
	}
	var all []Entry
	for _, name := range append(old, path) {
		all = append(all, mustRead(t, name)...)
	}
	mustCount(t, all, all[0].Number)
	told := map[Event]int{}
	for _, e := range all {
		told[e.Event]++
	}
	if told[Rotated] < 3 || told[Dropped] < 2 {
		t.Errorf("%v: rotation and deletion are told", told)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("somebody else's file: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, fifo, dir, filepath.Join(dir, "none", "audit")} {
		if l, err := Open(Options{Path: path}); err == nil {
			l.Close()
			t.Errorf("%s is taken for a log", path)
		}
	}
}

// TestTooMuch: lines that find no place are counted, and the log says so.
func TestTooMuch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := mustOpen(t, Options{Path: path})
	mustSync(t, l)
	l.mu.Lock() // the disk takes its time
	var written, lost uint64
	for lost < 3 {
		if l.write(Entry{Event: Asked, Message: json.RawMessage(`"` + strings.Repeat("x", 10000) + `"`)}) == 0 {
			lost++
		} else {
			written++
		}
	}
	l.mu.Unlock()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	entries := mustRead(t, path)
	mustCount(t, entries, 1)
	var told uint64
	for _, e := range entries {
		if e.Event == Lost {
			told += e.Count
		}
	}
	if uint64(len(entries)) < written || told < lost {
		t.Errorf("%d lines, %d told as lost, want %d and %d", len(entries), told, written, lost)
	}
}

// TestCountsAreKept: how many calls and connections have no line waits for a place, however
// long that takes, and is not counted as lost meanwhile.
func TestCountsAreKept(t *testing.T) {
	l := &Log{wake: queue.NewBell(), trouble: unix.ENOSPC, calls: newCalls(), log: slog.New(slog.DiscardHandler), moved: make(chan struct{})}
	peer := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}
	const most = 1
	l.calls.asked, l.calls.connections = quota.NewRate[user](most, time.Hour), quota.NewRate[user](most, time.Hour)
	for range most + 2 {
		l.WriteCall(Call{UID: 4712, What: "POST"})
	}
	for range most + 2 {
		l.Refused(peer, errors.New("who are you"))
	}
	for l.Write(Entry{Event: Started}) != 0 {
		continue // until no more can wait
	}
	for range 5 {
		l.calls.flush(l.tryWrite)
	}
	if l.lost != 1 || l.missing != 1 {
		t.Errorf("%d lines are counted as lost, %d in all, want the one that found no place", l.lost, l.missing)
	}
	l.take()
	l.giveBack(nil) // the disk has taken all
	l.report(l.number, nil)
	l.calls.flush(l.tryWrite)
	if counts := bytes.Count(l.pending, []byte(`"count":2`)); counts != 2 {
		t.Errorf("%s: want both counts", l.pending)
	}
}

// TestSlowDisk: what the disk has not confirmed counts as waiting, however often
// it is given back.
func TestSlowDisk(t *testing.T) {
	l := &Log{wake: queue.NewBell(), trouble: unix.EIO}
	line := Entry{Event: Asked, What: strings.Repeat("x", 1000)}
	for range 3 {
		for l.Write(line) != 0 {
			continue // until no more can wait
		}
		lines, _, _ := l.take()
		for range 10 {
			l.Write(line)
		}
		l.giveBack(lines)
		if n := len(l.pending); n > maxPending {
			t.Fatalf("%d bytes wait, at most %d may", n, maxPending)
		}
	}
	if l.lost < 30 {
		t.Errorf("%d lines are counted as lost", l.lost)
	}
}

// TestRefused: strangers cannot fill the disk.
func TestRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := mustOpen(t, Options{Path: path})
	l.calls.connections = quota.NewRate[user](connectionsAtOnce, time.Hour) // none is added meanwhile
	peer := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}
	for range 1000 {
		l.Refused(peer, errors.New("who are you"))
	}
	l.Refused(&net.UnixAddr{Name: "@", Net: "unix"}, errors.New("who are you"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var lines, more int
	for _, e := range mustRead(t, path) {
		if e.Event == Refused {
			lines++
			more += int(e.Count)
		}
	}
	if lines != connectionsAtOnce+1 || more != 1001-connectionsAtOnce {
		t.Errorf("%d lines, %d more", lines, more)
	}
}

func TestSyncEnds(t *testing.T) {
	l := mustOpen(t, Options{Path: filepath.Join(t.TempDir(), "audit.jsonl")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.mu.Lock()
	l.number++ // a line that is never written
	l.mu.Unlock()
	if err := l.Sync(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestDecisions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := mustOpen(t, Options{Path: path})
	w := l.Lines("session 1")
	fmt.Fprintln(w, `{"kind":"applied"}`)
	fmt.Fprintln(w, "no JSON")
	mustSync(t, l)
	entries := mustRead(t, path)
	if len(entries) != 3 || entries[1].What != "session 1" || string(entries[1].Message) != `{"kind":"applied"}` || entries[2].Error == "" {
		t.Errorf("%+v", entries)
	}
}

// FuzzLine: whatever others have written, a line is one line and JSON.
func FuzzLine(f *testing.F) {
	f.Add("10.0.0.1:1", "/attune.v1.SessionService/StartSession", "no", "alice", []byte(`{"a":1}`))
	f.Add("\n", "\x00\xff", "\u2028", "\x1b[2J", []byte("{"))
	f.Fuzz(func(t *testing.T, from, what, reason, name string, message []byte) {
		e := Entry{Event: Asked, From: from, What: what, Error: reason, Who: &Who{Name: name}}
		if json.Valid(message) {
			e.Message = message
		}
		line, err := e.line()
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(line) || bytes.Count(line, []byte("\n")) != 1 || line[len(line)-1] != '\n' {
			t.Errorf("%q", line)
		}
	})
}
