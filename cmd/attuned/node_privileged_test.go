// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/confined"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/gobuild"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	"github.com/attune-hpc/attune/packaging/systemd"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// attuned is the command under test, and attune what people ask it with.
var attuned, attune string

func TestMain(m *testing.M) {
	setUp := func(bin string) error {
		attuned, attune = filepath.Join(bin, "attuned"), filepath.Join(bin, "attune")
		return nil
	}
	os.Exit(gobuild.Main(m, setUp, gobuild.Command{Package: ".", LongGate: true, Made: "../../bin/attuned"},
		gobuild.Command{Package: "../attune", Made: "../../bin/attune"}))
}

// site is a registry with one Analyzer that has one registration, in its own
// directory.
type site struct {
	t        *testing.T
	dir      string
	server   *embed.Server
	registry *registry.Client
	analyzer *analyzer.Analyzer
	served   chan error
}

// mustSite has an Analyzer with one session.
func mustSite(t *testing.T, config analyzer.Config) *site {
	t.Helper()
	s := mustSiteOnly(t)
	s.serveAnalyzer(config)
	return s
}

// mustSiteOnly has an Analyzer in the registry that the test is to serve, at
// a.sock.
func mustSiteOnly(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: asuser.Folder(t), served: make(chan error, 1)} // users have programs and sockets below
	s.write("policy.yaml", "service:\n  - mode: tune\n    users: [root, nobody]\n")
	s.openRegistry()
	s.announceAnalyzer()
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, content string) {
	s.t.Helper()
	files.Write(s.t, s.path(name), content, 0o600)
}

// worker builds testdata/worker.c under a name, where users see it, and returns its path.
func (s *site) worker(name string) string {
	s.t.Helper()
	if err := os.Rename(targets.Build(s.t, "testdata/worker.c", "-pthread"), s.path(name)); err != nil {
		s.t.Fatal(err)
	}
	return s.path(name)
}

func (s *site) openRegistry() {
	s.t.Helper()
	s.startRegistry()
	s.t.Cleanup(func() { _ = s.server.Close() })
	var err error
	s.registry, err = registry.Open(s.t.Context(), registry.Options{URL: "unix:" + s.path("r.sock")})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.registry.Close)
}

func (s *site) startRegistry() {
	s.t.Helper()
	var err error
	if s.server, err = embed.Start(embed.Options{Dir: s.path("registry"), Socket: s.path("r.sock")}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) closeRegistry() {
	s.t.Helper()
	if err := s.server.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) serveAnalyzer(config analyzer.Config) {
	s.t.Helper()
	var err error
	if s.analyzer, err = analyzer.New(config); err != nil {
		s.t.Fatal(err)
	}
	listener, err := net.Listen("unix", s.path("a.sock"))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(cancel)
	go func() { s.served <- s.analyzer.Serve(ctx, listener) }()
	if err := s.analyzer.Start(ctx); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) announceAnalyzer() {
	s.t.Helper()
	host, err := os.Hostname()
	if err != nil {
		s.t.Fatal(err)
	}
	record := &attunev1.AnalyzerRecord{Id: "a1", Host: host, Addresses: []string{"unix:" + s.path("a.sock")}}
	if _, err := s.registry.Announce(s.t.Context(), record, nil); err != nil {
		s.t.Fatal(err)
	}
}

// register registers a program, for the site.
func (s *site) register(id, executable, mode string) {
	s.t.Helper()
	s.put(&attunev1.Registration{
		Id: id, Executable: executable, Mode: mode, Owner: &attunev1.Principal{Name: "site", Role: attunev1.Role_ROLE_NODE},
		RegisteredUnixNano: time.Now().UnixNano(),
	})
}

// put has a registration in the registry, and the Analyzer have it.
func (s *site) put(r *attunev1.Registration) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience.Limit)
	defer cancel()
	if err := s.registry.PutRegistration(ctx, r); err != nil {
		s.t.Error(err)
	}
	if _, err := s.registry.Claim(ctx, r.GetId()); err != nil {
		s.t.Error(err)
	}
}

// attuned starts the daemon with the rights of its unit.
func (s *site) attuned(args ...string) *exec.Cmd {
	s.t.Helper()
	daemon := exec.Command(attuned, append([]string{
		"--config", os.DevNull, "--registry", "unix:" + s.path("r.sock"), "--run-dir", s.path("run"),
		"--state-dir", s.path("state"), "--policy", s.path("policy.yaml"), "--off-file", s.path("off"), "--log-level", "debug",
	}, args...)...)
	log, err := os.OpenFile(s.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	daemon.Stderr = log
	confined.SetEnvironment(s.t, daemon, systemd.Attuned)
	confined.Apply(s.t, daemon, "../../internal/testing/confined", systemd.Attuned, s.dir)
	if err := daemon.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = daemon.Process.Kill() // it has ended unless the test failed
		if s.t.Failed() {
			text, _ := os.ReadFile(s.path("log"))
			s.t.Logf("attuned says:\n%s", text)
		}
	})
	return daemon
}

// stop ends the daemon in order.
func (s *site) stop(daemon *exec.Cmd) {
	s.t.Helper()
	if err := daemon.Process.Signal(unix.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := daemon.Wait(); err != nil {
		s.t.Errorf("attuned ended with %v", err)
	}
}

// A registered program is found when it starts, and one that runs already; both
// come to the Analyzer as processes of a session, and end as they would have.
func TestRegisteredProgramIsFound(t *testing.T) {
	s := mustSite(t, analyzer.Config{Mode: "observe", Command: []string{"cat"}, JobID: "found", NoTunlets: true})
	program := s.path("program")
	if out, err := exec.Command("cp", "/bin/cat", program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	start := func() (end func()) {
		command := exec.Command(program)
		stdin, err := command.StdinPipe()
		if err == nil {
			err = command.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			stdin.Close()
			if err := command.Wait(); err != nil {
				t.Errorf("program: %v", err)
			}
		}
	}
	endEarly := start()
	daemon := s.attuned()
	s.register("r1", program, "observe")
	processes := func() int { return s.analyzer.Snapshot().Processes }
	patience.Until(t, "the program that ran already", func() bool { return processes() == 1 })
	endLate := start()
	patience.Until(t, "the program that was started", func() bool { return processes() == 2 })
	endEarly()
	endLate()
	s.stop(daemon)
	r := s.analyzer.Finish(context.Background(), nil)
	for _, p := range r.Processes {
		if !strings.HasSuffix(p.Exe, "program") {
			t.Errorf("process in the report: %+v", p)
		}
	}
}
