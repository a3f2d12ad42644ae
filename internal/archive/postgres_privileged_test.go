//go:build privileged

// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/sqlfile"
	"github.com/attune-hpc/attune/internal/testing/pgserver"
)

// TestServer: an archive on a PostgreSQL server does what one in a file does, and says
// what is wrong with the server.
func TestServer(t *testing.T) {
	server := pgserver.Start(t)
	databases := 0
	place := func(testing.TB) string {
		databases++
		return server.Database(fmt.Sprintf("archive%d", databases))
	}
	conform(t, place)
	t.Run("rights", func(t *testing.T) { testRights(t, server, place(t), fmt.Sprintf("archive%d", databases)) })
	t.Run("newer", func(t *testing.T) {
		url := place(t)
		s, err := open(t.Context(), url, options{wait: time.Second, limit: maxBytes, migrations: append(migrations[:len(migrations):len(migrations)], "CREATE TABLE later (x TEXT)")})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), url); !errors.Is(err, sqlfile.ErrNewer) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("secrets", func(t *testing.T) {
		s := mustOpen(t, place(t))
		for _, want := range []Added{{New: 1}, {Known: 1}} {
			if added := mustAdd(t, s, withSecrets()); added != want {
				t.Errorf("%+v, want %+v", added, want)
			}
		}
		if err := s.EachTask(t.Context(), Filter{}, func(_ string, task *Task) error {
			if p := task.Account.Provenance; p == nil || len(p.Inputs) != 1 || p.Environment != nil || p.Stdout != nil || p.Stderr != nil {
				t.Errorf("%+v", p)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	t.Run("no such database", func(t *testing.T) {
		if _, err := Open(t.Context(), server.URL("postgres", "nowhere")); err == nil || !strings.Contains(err.Error(), "createdb") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("away", func(t *testing.T) {
		url := place(t)
		s := mustOpen(t, url)
		mustAdd(t, s, newTask("a", 1))
		server.Stop()
		if _, err := s.Add(t.Context(), newTask("a", 2)); !errors.Is(err, ErrAway) {
			t.Errorf("while it was open: %v", err)
		}
		if _, err := Open(t.Context(), url); !errors.Is(err, ErrAway) || !strings.Contains(err.Error(), "pg_isready") {
			t.Errorf("error %v", err)
		}
		server.Start()
		mustAdd(t, s, newTask("a", 2))
	})
}

// testRights: who may only read and add can do so, and who may not is told how to.
func testRights(t *testing.T, server *pgserver.Server, url, database string) {
	server.Execute(database, "CREATE USER guest")
	guest := server.URL("guest", database)
	if _, err := Open(t.Context(), guest); err == nil || !strings.Contains(err.Error(), "owner opens it first") {
		t.Errorf("who may not make tables: %v", err)
	}
	mustOpen(t, url)
	if s, err := Open(t.Context(), guest); err == nil {
		_, err = s.Add(t.Context(), newTask("a", 1))
		if err == nil || !strings.Contains(err.Error(), "GRANT") {
			t.Errorf("who has no rights: %v", err)
		}
		_ = s.Close() // nothing was written
	} else if !strings.Contains(err.Error(), "GRANT") {
		t.Errorf("who has no rights: %v", err)
	}
	server.Execute(database, "GRANT USAGE ON SCHEMA attune TO guest; GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA attune TO guest")
	mustAdd(t, mustOpen(t, guest), newTask("a", 1))
}
