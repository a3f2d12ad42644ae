// SPDX-License-Identifier: Apache-2.0

//go:build site

package e2e

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/confined"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/serviceuser"
	"github.com/attune-hpc/attune/packaging/systemd"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// services are an Analyzer's and a node's, on this machine, with a program that
// they tune.
type services struct {
	t                          *testing.T
	dir                        string
	analyzer, attuned, program *exec.Cmd
}

// startServices starts both, and a program that they are to tune.
func startServices(t *testing.T) *services {
	t.Helper()
	dir, err := os.MkdirTemp("", "ak-") //nolint:usetesting // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &services{t: t, dir: dir}
	files.Write(t, s.path("policy.yaml"), "service:\n  - mode: tune\n    users: [root]\n", 0o600)
	s.startAnalyzer()
	s.startNode()
	s.register("python3*", "--args", regexp.QuoteMeta(s.path("faults")), "--objective", "faults=less file:"+s.path("faults")+":^faults ([0-9]+)")
	s.program = exec.Command("/usr/bin/python3", "-c", faults, "600", s.path("faults"))
	if err := s.program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(s.program) })
	return s
}

func (s *services) path(name string) string { return filepath.Join(s.dir, name) }

// start starts a service with the rights of its unit in the background; the test kills it at the end.
func (s *services) start(command string, args ...string) *exec.Cmd {
	s.t.Helper()
	log, err := os.OpenFile(s.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("../../../bin/"+command, args...)
	cmd.Stdout, cmd.Stderr = log, log
	unit := systemd.Attuned
	if command == "attune" {
		unit = systemd.Analyzer
		serviceuser.Must(s.t, cmd, s.path("analyzer-run"), s.path("analyzer"))
	}
	confined.Apply(s.t, cmd, "../confined", unit, s.dir)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { kill(cmd) })
	return cmd
}

func (s *services) startAnalyzer() {
	s.analyzer = s.start("attune", "analyzer", "serve", "--config", os.DevNull,
		"--run-dir", s.path("analyzer-run"), "--state-dir", s.path("analyzer"), "--tunlet-dir", "../../../bin")
}

func (s *services) startNode() {
	s.attuned = s.start("attuned", "--config", os.DevNull, "--run-dir", s.path("run"), "--state-dir", s.path("node"),
		"--registry", "unix:"+s.path("analyzer-run/registry.sock"), "--policy", s.path("policy.yaml"))
}

// kill ends a service as a crash does, unless it has ended.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// session runs attune session.
func (s *services) session(args ...string) ([]byte, error) {
	args = append([]string{"session", args[0], "--analyzer", "unix:" + s.path("analyzer-run/analyzer.sock")}, args[1:]...)
	return exec.Command(attune, args...).Output()
}

// register registers a program as soon as the Analyzer answers.
func (s *services) register(program string, flags ...string) {
	s.t.Helper()
	s.until("registered", func() bool {
		_, err := s.session(slices.Concat([]string{"start", "--app", program, "--tunlet", "malloc"}, flags)...)
		return err == nil
	})
}

// until waits for something to come true, and shows what the services have logged
// if it does not.
func (s *services) until(what string, met func() bool) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			log, _ := os.ReadFile(s.path("log"))
			s.t.Logf("sessions %v\n%s", s.sessions(), log)
		}
	}()
	patience.Until(s.t, "the program or its services to be "+what, met)
}

// sessions lists the sessions; none while nobody answers.
func (s *services) sessions() []*attunev1.SessionRecord {
	out, err := s.session("list", "--json")
	if err != nil {
		return nil
	}
	listed := new(attunev1.ListSessionsResponse)
	if err := protojson.Unmarshal(out, listed); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	return listed.GetSessions()
}

// tuned waits until one session runs whose changes were kept.
func (s *services) tuned(when string) (one *attunev1.SessionRecord) {
	s.t.Helper()
	s.until("tuned "+when, func() bool {
		sessions := s.sessions()
		if len(sessions) != 1 {
			return false
		}
		one = sessions[0]
		return one.GetRunning() == 1 && len(one.GetKeptChanges()) > 0
	})
	return one
}

// tunlets lists the processes of tunlets of the Analyzer, by process id.
func (s *services) tunlets() []string {
	parent := strconv.Itoa(s.analyzer.Process.Pid)
	out, _ := exec.Command("pgrep", "-P", parent, "-f", "attune-tunlets").Output() // it fails where there is none
	return strings.Fields(string(out))
}

// changes returns the ids of the changes that the services have logged something
// of.
func (s *services) changes(what string) map[string]bool {
	s.t.Helper()
	log := files.Read(s.t, s.path("log"))
	changes := map[string]bool{}
	for line := range strings.Lines(string(log)) {
		if !strings.Contains(line, what) {
			continue
		}
		_, id, _ := strings.Cut(line, " change=")
		id, _, _ = strings.Cut(id, " ")
		changes[id] = true
	}
	return changes
}

// programRuns checks that the program goes on.
func (s *services) programRuns(after string) {
	s.t.Helper()
	if stat, err := procid.ReadStat(s.program.Process.Pid); err != nil || stat.Zombie() {
		s.t.Fatalf("%s: the program has ended: %v", after, err)
	}
}

// Whatever is killed, the program runs on, and what was gained in it stays or
// comes back.
func TestServicesAreKilled(t *testing.T) {
	s := startServices(t)
	first := s.tuned("at first")
	s.killAnalyzer(first)
	s.until("served by a tunlet", func() bool { return len(s.tunlets()) == 1 })
	s.killNode()
	s.killTunlet()

	kill(s.program)
	s.until("over", func() bool { return len(s.sessions()) == 0 })
	for _, service := range []*exec.Cmd{s.attuned, s.analyzer} {
		if err := service.Process.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := service.Wait(); err != nil {
			t.Errorf("%s ended with %v", service.Args[0], err)
		}
	}
}

// killAnalyzer checks that the next one goes on with the session.
func (s *services) killAnalyzer(before *attunev1.SessionRecord) {
	s.t.Helper()
	kill(s.analyzer)
	s.programRuns("without an Analyzer")
	s.startAnalyzer()
	again := s.tuned("after the Analyzer was killed")
	if again.GetId() != before.GetId() || again.GetKept() < before.GetKept() {
		s.t.Errorf("after the Analyzer was killed: session %v, before %v", again, before)
	}
}

// killNode checks that the next controller undoes what was changed, and that it is
// changed again.
func (s *services) killNode() {
	s.t.Helper()
	kept := s.tuned("before the controller is killed").GetKeptChanges()
	kill(s.attuned)
	s.programRuns("without a controller")
	earlier := s.changes("outcome=OUTCOME_APPLIED")
	s.startNode()
	s.until("restored", func() bool {
		restored := s.changes("undone=true")
		return !slices.ContainsFunc(kept, func(c *attunev1.KeptChange) bool { return !restored[c.GetId()] })
	})
	// On a machine that is busy with other things a change may be made and undone
	// several times until it is proven.
	s.until("changed again", func() bool {
		made := s.changes("outcome=OUTCOME_APPLIED")
		maps.DeleteFunc(made, func(id string, _ bool) bool { return earlier[id] })
		return len(made) >= len(kept)
	})
	s.tuned("after the controller was killed")
}

// killTunlet checks that another one takes its place.
func (s *services) killTunlet() {
	s.t.Helper()
	killed := s.tunlets()
	if len(killed) != 1 {
		s.t.Fatalf("tunlets %v, want one of the session", killed)
	}
	run(s.t, "kill", "-KILL", killed[0])
	s.until("restarted", func() bool {
		now := s.tunlets()
		return len(now) == 1 && now[0] != killed[0]
	})
	s.programRuns("after the tunlet was killed")
}
