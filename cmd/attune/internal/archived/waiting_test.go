// SPDX-License-Identifier: Apache-2.0

package archived

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestSentByAnother: what another command sends between a look at what waits and its
// turn is nothing that this one fails of.
func TestSentByAnother(t *testing.T) {
	s, err := archive.Open(t.Context(), filepath.Join(t.TempDir(), File))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Add(t.Context(), newTask(0), newTask(1), newTask(2)); err != nil {
		t.Fatal(err)
	}
	list, err := s.List(t.Context(), archive.Filter{Limit: sentAtOnce})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), list[1].ID); err != nil {
		t.Fatal(err)
	}
	tasks, ids, err := read(t.Context(), s, list)
	if want := []string{list[0].ID, list[2].ID}; err != nil || len(tasks) != 2 || !slices.Equal(ids, want) {
		t.Errorf("%d tasks %q, want %q: %v", len(tasks), ids, want, err)
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
