// SPDX-License-Identifier: Apache-2.0

// Package pgserver runs a PostgreSQL server of Debian's for a test, as its user postgres.
// It needs root.
package pgserver

import (
	"bytes"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// Server is a server of the test's own. Its methods are for the test's goroutine.
type Server struct {
	t         testing.TB
	dir, bin  string
	attribute *syscall.SysProcAttr
	running   *exec.Cmd // nil: it was stopped
}

// Start makes a database and starts its server, which ends with the test. It listens on a
// socket only, and believes whoever they say they are.
func Start(t testing.TB) *Server {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		t.Fatal("no PostgreSQL; scripts/deps test installs it")
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(who.Uid) // they are numbers
	gid, _ := strconv.Atoi(who.Gid)
	dir, err := os.MkdirTemp("/tmp", "pg") //nolint:usetesting // a socket needs a short path, and another user passes to it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, dir: dir, bin: found[len(found)-1], attribute: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}}
	s.run("initdb", "--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8", "--pgdata="+filepath.Join(dir, "data"))
	t.Cleanup(s.Stop)
	s.Start()
	return s
}

func (s *Server) command(program string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, program), arguments...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.attribute
	return cmd
}

func (s *Server) run(program string, arguments ...string) {
	s.t.Helper()
	if out, err := s.command(program, arguments...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v: %s", program, err, out)
	}
}

// Start starts a server that was stopped.
func (s *Server) Start() {
	s.t.Helper()
	s.running = s.command("postgres", "-D", filepath.Join(s.dir, "data"), "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off")
	var said bytes.Buffer
	s.running.Stderr = &said
	if err := s.running.Start(); err != nil {
		s.t.Fatal(err)
	}
	patience.Until(s.t, "the server answers", func() bool { return s.command("pg_isready", "-q", "-h", s.dir).Run() == nil })
}

// Stop stops the server at once.
func (s *Server) Stop() {
	if s.running == nil {
		return
	}
	_ = s.running.Process.Signal(syscall.SIGINT) // fast shutdown; it may have ended
	_ = s.running.Wait()                         // its exit code is nothing to the test
	s.running = nil
}

// Database makes a database, and returns its URL as its owner.
func (s *Server) Database(name string) string {
	s.t.Helper()
	s.run("createdb", "-h", s.dir, "-U", "postgres", name)
	return s.URL("postgres", name)
}

// URL is that of a database for a user.
func (s *Server) URL(user, database string) string {
	return "postgres:///" + database + "?" + url.Values{"host": {s.dir}, "user": {user}, "sslmode": {"disable"}}.Encode()
}

// Execute runs statements as the owner.
func (s *Server) Execute(database, statements string) {
	s.t.Helper()
	s.run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", s.dir, "-U", "postgres", "-d", database, "-c", statements)
}
