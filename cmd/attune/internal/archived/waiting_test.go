// SPDX-License-Identifier: Apache-2.0

package archived

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestUnreadableWaits: an account that cannot be read stays where it waits, which is said with what to do, and holds up no other one.
func TestUnreadableWaits(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	at := filepath.Join(dir, File)
	var path string
	for n := range 3 {
		var err error
		if path, err = wait(t.Context(), at, newTask(n)); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "UPDATE document SET body = x'00' WHERE number = 2")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	err = with(t.Context(), at, func(*archive.Store) error { return nil })
	if !errors.Is(err, ErrNotSent) || !errors.Is(err, archive.ErrUnreadable) || !strings.HasSuffix(err.Error(), "move "+path+" away") {
		t.Errorf("error %v", err)
	}
	for place, want := range map[string]int{at: 2, path: 1} {
		s, err := archive.Open(t.Context(), place)
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.List(t.Context(), archive.Filter{})
		if err := errors.Join(err, s.Close()); err != nil || len(list) != want {
			t.Errorf("%s has %d tasks, want %d; %v", place, len(list), want, err)
		}
	}
}

// newTask returns the n-th of tasks that have ended.
func newTask(n int) *archive.Task {
	start := time.Unix(1_800_000_000, 0).UTC()
	return &archive.Task{Schema: archive.SchemaID, Source: "attune", Account: account.Account{
		Schema: account.SchemaID, Command: []string{fmt.Sprintf("/bin/task%d", n)}, Exit: account.Exit{Type: account.ExitNormal, Code: new(0)},
		Start: start, End: start.Add(time.Second),
	}}
}

// TestPutAside: an account that the archive does not take for a while is there after the next
// command, by whatever path that names the file.
func TestPutAside(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Chdir(dir)
	for n, tt := range []struct {
		name  string
		err   error
		waits bool
	}{
		{"busy", archive.ErrBusy, true},
		{"full", archive.ErrFull, true},
		{"damaged", archive.ErrBroken, false},
		{"no task", archive.ErrInvalid, false},
		{"added", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := tt.name + ".db"
			p := &Pending{at: at, task: *newTask(n)}
			err := p.putAside(t.Context(), tt.err)
			if !errors.Is(err, tt.err) || tt.waits != (err != nil && strings.Contains(err.Error(), "it waits in "+dir)) {
				t.Fatalf("error %v", err)
			}
			list := func() (all []archive.Summary) {
				if err := with(t.Context(), filepath.Join(dir, at), func(s *archive.Store) (err error) {
					all, err = s.List(t.Context(), archive.Filter{})
					return err
				}); err != nil {
					t.Fatal(err)
				}
				return all
			}
			list() // the command that sends what waits, after its own work
			if all := list(); (len(all) == 1) != tt.waits {
				t.Errorf("%d tasks are there", len(all))
			}
		})
	}
}

// TestWithoutStateDirectory: an archive that has a place of its own needs no other one.
func TestWithoutStateDirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "state")
	files.Write(t, file, "", 0o600)
	t.Setenv("XDG_STATE_HOME", file)
	if err := with(t.Context(), filepath.Join(dir, File), func(*archive.Store) error { return nil }); err != nil {
		t.Error(err)
	}
}
