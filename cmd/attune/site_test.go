// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/analyzer"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/testing/confined"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/serviceuser"
	"github.com/attune-hpc/attune/packaging/systemd"
)

// testSite is an Analyzer's service as a process of its own, with the rights of its
// unit.
type testSite struct {
	t    *testing.T
	dir  string
	more []string // flags
	cmd  *exec.Cmd
	log  *bytes.Buffer
}

func newSite(t *testing.T) *testSite {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") //nolint:usetesting // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	s := &testSite{t: t, dir: dir}
	t.Cleanup(func() {
		s.end(syscall.SIGKILL)
		_ = os.RemoveAll(dir)
	})
	s.start()
	return s
}

func (s *testSite) flags() []string {
	return append([]string{
		"analyzer", "serve", "--run-dir", filepath.Join(s.dir, "run"), "--state-dir", filepath.Join(s.dir, "state"), "--tunlet-dir", bin,
	}, s.more...)
}

// start starts it and waits until it is ready.
func (s *testSite) start() {
	s.t.Helper()
	s.log = new(bytes.Buffer)
	s.cmd = exec.Command(filepath.Join(bin, "attune"), s.flags()...)
	s.cmd.Stderr = s.log
	confined.SetEnvironment(s.t, s.cmd, systemd.Analyzer)
	serviceuser.Must(s.t, s.cmd, s.dir)
	confined.Apply(s.t, s.cmd, "../../internal/testing/confined", systemd.Analyzer, s.dir)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	patience.Until(s.t, "the Analyzer to be ready", func() bool { return s.get("/readyz") == http.StatusOK })
}

// client asks at its socket for those that look after it.
func (s *testSite) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.dir, "run", analyzer.HealthSocket))
	}}}
}

// get asks for its health; 0: there is no answer.
func (s *testSite) get(path string) int {
	resp, err := s.client().Get("http://analyzer" + path)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// end ends it by a signal and returns its exit code.
func (s *testSite) end(signal syscall.Signal) int {
	_ = s.cmd.Process.Signal(signal)
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

// ask runs a command of attune that asks it.
func (s *testSite) ask(args ...string) (stdout string, code int) {
	s.t.Helper()
	s.t.Setenv("ATTUNE_ANALYZER", "unix:"+filepath.Join(s.dir, "run", analyzer.ServiceSocket))
	var out, errs bytes.Buffer
	code = execute(args, &cli.Env{Stdout: &out, Stderr: &errs})
	return out.String() + errs.String(), code
}

// TestCrashIsNoWrongSetting: systemd starts an Analyzer again that Go's runtime has ended, as it
// does at a panic, and leaves one alone whose settings are wrong.
func TestCrashIsNoWrongSetting(t *testing.T) {
	s := newSite(t)
	s.end(syscall.SIGABRT) // which the runtime answers like a panic
	if ended := s.cmd.ProcessState; confined.StaysEnded(t, systemd.Analyzer, ended) {
		t.Errorf("it stays ended after %v", ended)
	}
	wrong := exec.Command(filepath.Join(bin, "attune"), "analyzer", "serve", "--check-config", "--listen", "here")
	serviceuser.Must(t, wrong, s.dir)
	if out, err := wrong.CombinedOutput(); !confined.StaysEnded(t, systemd.Analyzer, wrong.ProcessState) {
		t.Errorf("with wrong settings it is started again after %v: %s", err, out)
	}
}

// TestSiteCommands registers an application, which stays so when the service is
// killed, and takes it back.
func TestSiteCommands(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"session", "list"}, exitcode.OK, "Nothing is registered"},
		{[]string{"session", "start"}, exitcode.Usage, "no application is named"},
		{[]string{"session", "start", "--app", "x", "--args", "("}, exitcode.Usage, "missing closing )"},
		{[]string{"session", "start", "--app", "x", "--sha256", "abc"}, exitcode.Usage, "no SHA-256"},
		{[]string{"session", "start", "--app", "x", "--mode", "y"}, exitcode.Usage, `unknown mode "y"`},
		{[]string{"session", "start", "--app", "x", "--tunlet", "none"}, exitcode.Usage, "tunlet none"},
		{[]string{"session", "show", "x"}, exitcode.Failure, `no session or registration "x"`},
		{[]string{"session", "stop", "x"}, exitcode.Failure, `no session or registration "x"`},
		{[]string{"session", "stop"}, exitcode.Usage, "one id is needed"},
		{[]string{"session", "start", "--app", "solver*", "--mode", "advise", "--tunlet", "malloc"}, exitcode.OK, "observed, with advice"},
		{[]string{"session", "list"}, exitcode.OK, "solver*"},
		{[]string{"node", "list"}, exitcode.OK, "Analyzer"},
		{[]string{"probe", "watch", "--session", "x", "1", "libc.so.6:malloc"}, exitcode.Failure, `no session or registration "x"`},
		{[]string{"probe", "add", "--host", "n1", "1", "libc.so.6:malloc"}, exitcode.Usage, "no session is named"},
		{[]string{"probe", "list", "--session", "solver"}, exitcode.Failure, `no session or registration "solver"`},
		{[]string{"ps", "--site"}, exitcode.OK, "Nothing is under control"},
		{[]string{"ps", "--analyzer", "unix:/x"}, exitcode.Usage, "add --site"},
		{[]string{"ps", "--site", "--all"}, exitcode.Usage, "leave out --all or --site"},
	} {
		if got, code := s.ask(c.args...); code != c.code || !strings.Contains(got, c.want) {
			t.Errorf("attune %v: code %d, %q", c.args, code, got)
		}
	}
	second := exec.Command(filepath.Join(bin, "attune"), s.flags()...)
	serviceuser.Must(t, second, s.dir)
	if out, err := second.CombinedOutput(); second.ProcessState.ExitCode() != exitcode.Failure || !strings.Contains(string(out), "stop it first") {
		t.Errorf("a second service: %v, %s", err, out)
	}
	s.end(syscall.SIGKILL)
	if got, code := s.ask("session", "list"); code != exitcode.Failure || !strings.Contains(got, "is the Analyzer running") {
		t.Errorf("without the service: code %d, %q", code, got)
	}
	s.start()
	list, _ := s.ask("session", "list")
	fields := strings.Fields(list)
	at := slices.Index(fields, "solver*")
	if at < 1 {
		t.Fatalf("after it was killed: %q\n%s", list, s.log)
	}
	if got, code := s.ask("session", "stop", fields[at-1]); code != exitcode.OK || !strings.Contains(got, "left alone") {
		t.Errorf("stop: code %d, %q", code, got)
	}
	if code := s.end(syscall.SIGTERM); code != exitcode.OK {
		t.Errorf("ended with code %d: %s", code, s.log)
	}
}

// TestDoctorSeesRestrictions: of an Analyzer with the rights of its unit, and of one
// that was started by hand.
func TestDoctorSeesRestrictions(t *testing.T) {
	s := newSite(t)
	free := &testSite{t: t, dir: s.dir + "/free"}
	free.cmd = exec.Command(filepath.Join(bin, "attune"), free.flags()...)
	serviceuser.Must(t, free.cmd, free.dir)
	if err := free.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { free.end(syscall.SIGKILL) })
	patience.Until(t, "the second Analyzer to be ready", func() bool { return free.get("/readyz") == http.StatusOK })
	out, code := s.ask("doctor", "--service")
	if code != exitcode.OK {
		t.Fatalf("code %d, %s", code, out)
	}
	for _, of := range []struct {
		service *testSite
		state   string
	}{{s, "in force"}, {free, "missing"}} {
		for _, what := range []string{"no new privileges", "system calls"} {
			name := fmt.Sprintf("attune-analyzer %d: %s ", of.service.cmd.Process.Pid, what)
			_, rest, found := strings.Cut(out, name)
			if !found || !strings.HasPrefix(strings.TrimSpace(rest), of.state) {
				t.Errorf("%s is not %s:\n%s", name, of.state, out)
			}
		}
	}
}

// TestAnalyzerIsNotRoot: nobody starts it with root's rights by mistake, nor is told of root's
// rights what its settings are worth.
func TestAnalyzerIsNotRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a user may run it")
	}
	dir := t.TempDir()
	command := exec.Command(filepath.Join(bin, "attune"), "analyzer", "serve", "--run-dir", dir+"/run", "--state-dir", dir+"/state")
	out, err := command.CombinedOutput()
	if command.ProcessState.ExitCode() != exitcode.Usage || !strings.Contains(string(out), "does not run as root; `systemctl start") {
		t.Errorf("%v, %s", err, out)
	}
	command = exec.Command(filepath.Join(bin, "attune"), "analyzer", "serve", "--check-config")
	out, err = command.CombinedOutput()
	if command.ProcessState.ExitCode() != exitcode.Usage || !strings.Contains(string(out), "setpriv --reuid=attune --regid=attune --init-groups attune analyzer serve --check-config") {
		t.Errorf("%v, %s", err, out)
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("it has made %v, %v", made, err)
	}
}

// TestAnalyzerSettings checks configurations without serving.
func TestAnalyzerSettings(t *testing.T) {
	certs := t.TempDir()
	for _, command := range []string{"init --ca root", "issue --ca root --role node n1", "issue --ca root --role analyzer --host head head"} {
		if got := shellIn(t, certs, "$ATTUNE_BINARY cert "+command, ""); got.code != 0 {
			t.Fatalf("%s: %+v", command, got)
		}
	}
	certified := func(dir, role string) []string {
		return []string{"--listen", ":0", "--tls-ca", certs + "/root/ca.crt", "--tls-cert", filepath.Join(certs, dir, role+".crt"), "--tls-key", filepath.Join(certs, dir, role+".key")}
	}
	for _, c := range []struct {
		name, file string
		flags      []string
		want       string // of the error; empty: it is valid
		warns      string
	}{
		{name: "nothing"},
		{name: "registrations", file: "registrations:\n  lammps:\n    app: lmp*\n    mode: tune\n    batch-only: true\n"},
		{name: "an unknown key", file: "listne: [\":1\"]\n", want: `unknown key "listne"`},
		{name: "a key below one", file: "listen:\n  port: 7117\n", want: `unknown key "listen.port"`},
		{name: "an unknown key of a registration", file: "registrations:\n  x:\n    app: y\n    mod: tune\n", want: "mod"},
		{name: "a registration with no name for an id", file: "registrations:\n  my app:\n    app: y\n", want: "A-Z a-z 0-9"},
		{name: "a registration of nothing", file: "registrations:\n  x:\n    mode: tune\n", want: "no application is named"},
		{name: "the network without a certificate", flags: []string{"--listen", ":0", "--tls-cert", "/nonexistent"}, want: "certificate"},
		{name: "the network", flags: certified("head", "analyzer")},
		{name: "the network, renewed", flags: append(certified("head", "analyzer"), "--tls-issuer", "host:7118")},
		{name: "the certificate of a node", flags: certified("n1", "node"), want: "needs one of role analyzer"},
		{name: "nothing to renew", flags: []string{"--tls-issuer", "host:7118"}, want: "needs a certificate"},
		{name: "no address", flags: []string{"--listen", "here"}, want: "want HOST:PORT"},
		{name: "an address to advertise", flags: []string{"--advertise", "head.example.org:7117"}},
		{name: "no address to advertise", flags: []string{"--advertise", "head"}, want: "want HOST:PORT"},
		{name: "metrics nowhere", flags: []string{"--metrics-listen", "9117"}, want: "want HOST:PORT"},
		{name: "metrics in no file of node_exporter's", flags: []string{"--metrics-file", "/var/lib/attune.txt"}, want: "ends with .prom"},
		{name: "no time", flags: []string{"--lease", "0"}, want: "write a time"},
		{name: "a registry that is two", flags: []string{"--registry", "unix:/x", "--registry-listen", ":1"}, want: "belong to the embedded registry"},
		{name: "tunlets", file: "tunlet-dir: [" + bin + "]\nregistrations:\n  x:\n    app: y\n    tunlets: [malloc]\ntunlets:\n  malloc:\n    memory_bytes: 64GiB\n"},
		{name: "a tunlet that is not there", file: "tunlet-dir: [" + bin + "]\nregistrations:\n  x:\n    app: y\n    tunlets: [maloc]\n", want: `no tunlet "maloc"`},
		{name: "a directory of tunlets that is not there", file: "tunlet-dir: [" + bin + ", /no/such/dir]\n", want: "no directory /no/such/dir"},
		{name: "settings of a tunlet that is not there", file: "tunlet-dir: [" + bin + "]\ntunlets:\n  maloc:\n    memory_bytes: 64GiB\n", want: `no tunlet "maloc"`},
		{name: "a setting that a tunlet does not have", file: "tunlet-dir: [" + bin + "]\ntunlets:\n  malloc:\n    min_gian: 0.1\n", want: `option "min_gian": unknown; there is memory_bytes`},
		{name: "an unknown user", file: "registrations:\n  x:\n    app: y\n    user: nosuch\n", warns: "registration x: user nosuch is not known"},
		{name: "no log level", file: "log-level: loud\n", want: "loud"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "analyzer.yaml")
			files.Write(t, file, c.file, 0o600)
			var out, errs bytes.Buffer
			command := exec.Command(filepath.Join(bin, "attune"), append([]string{"analyzer", "serve", "--check-config", "--config", file}, c.flags...)...)
			command.Stdout, command.Stderr = &out, &errs
			serviceuser.Must(t, command, filepath.Dir(file), certs)
			var exit *exec.ExitError
			if err := command.Run(); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			code := command.ProcessState.ExitCode()
			switch {
			case c.want == "" && (code != exitcode.OK || out.String() != "configuration is valid\n"):
				t.Errorf("code %d, %s", code, errs.String())
			case !strings.Contains(errs.String(), c.warns):
				t.Errorf("warns: %s", errs.String())
			case c.want != "" && (code != exitcode.Usage || !strings.Contains(errs.String(), c.want)):
				t.Errorf("code %d, %q", code, errs.String())
			}
		})
	}
}
