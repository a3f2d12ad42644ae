// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// writer names the archive that this program adds a task to, as a process of
// TestBegunByManyAtOnce.
const writer = "ATTUNE_TEST_ARCHIVE"

func TestMain(m *testing.M) {
	path := os.Getenv(writer)
	if path == "" {
		os.Exit(m.Run())
	}
	_, _ = os.Stdin.Read(make([]byte, 1)) // all begin when it ends
	s, err := open(context.Background(), path, options{wait: patience.Limit, limit: maxBytes, migrations: migrations})
	if err == nil {
		_, err = s.Add(context.Background(), newTask("align", os.Getpid()))
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		panic(err)
	}
}

// TestBegunByManyAtOnce: processes that make the archive at the same time all have what
// they added in it.
func TestBegunByManyAtOnce(t *testing.T) {
	const many = 6
	for range targets.Fewer(15) {
		path := filepath.Join(t.TempDir(), "archive.db")
		start, hold, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range many {
			cmd := exec.Command(os.Args[0])
			cmd.Env, cmd.Stdin = append(os.Environ(), writer+"="+path), start
			var said bytes.Buffer
			cmd.Stderr = &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			group.Go(func() {
				if err := cmd.Wait(); err != nil {
					t.Errorf("%v: %s", err, &said)
				}
			})
		}
		if err := errors.Join(hold.Close(), start.Close()); err != nil {
			t.Fatal(err)
		}
		group.Wait()
		if all, err := mustOpen(t, path).List(t.Context(), Filter{}); err != nil || len(all) != many {
			t.Fatalf("%d tasks, %v; want %d", len(all), err, many)
		}
	}
}

// TestBusy: whoever waits in vain for another writer is told so.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "archive.db")
	s := mustOpen(t, path)
	tx, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := open(t.Context(), path, options{wait: 10 * time.Millisecond, limit: maxBytes, migrations: migrations})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Add(t.Context(), newTask("a", 1)); !errors.Is(err, ErrBusy) {
		t.Errorf("error %v", err)
	}
	if _, err := other.List(t.Context(), Filter{}); err != nil {
		t.Errorf("reading waits for a writer: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, other, newTask("a", 1))
}

// TestWriteWhileTasksAreRead: what is done with the tasks of an archive, as writing them to a
// pipe that nobody reads, keeps nobody from adding to it, with either kind of log.
func TestWriteWhileTasksAreRead(t *testing.T) {
	for _, journal := range []string{"wal", "delete"} {
		t.Run(journal, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "archive.db")
			reader, writer := mustOpenJournal(t, path, journal), mustOpenJournal(t, path, journal)
			mustAdd(t, reader, newTask("a", 1), newTask("a", 2), newTask("a", 3))
			var seen []string
			err := reader.EachTask(t.Context(), Filter{}, func(_ string, task *Task) error {
				seen = append(seen, task.Job)
				_, err := writer.Add(t.Context(), newTask("b", len(seen)))
				return err
			})
			if err != nil || !slices.Equal(seen, []string{"3", "2", "1"}) {
				t.Errorf("tasks %q, %v", seen, err)
			}
		})
	}
}

// TestTaskRemovedMeanwhile: what another one removes before its turn, as a command that sends it to another
// archive, is nothing that reading fails of.
func TestTaskRemovedMeanwhile(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "archive.db"))
	mustAdd(t, s, newTask("a", 1), newTask("a", 2), newTask("a", 3))
	list, err := s.List(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	if err := s.EachTask(t.Context(), Filter{}, func(id string, _ *Task) error {
		seen = append(seen, id)
		return s.Remove(t.Context(), list[1].ID)
	}); err != nil || !slices.Equal(seen, []string{list[0].ID, list[2].ID}) {
		t.Errorf("read %q of %+v, %v", seen, list, err)
	}
}

// mustOpenJournal opens an archive that waits for nobody long, with a kind of log.
func mustOpenJournal(t *testing.T, path, journal string) *Store {
	t.Helper()
	s, err := openFile(t.Context(), path, journal, options{wait: 50 * time.Millisecond, limit: maxBytes, migrations: migrations})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
