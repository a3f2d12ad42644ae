// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/internal/logging"
	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/confined"
	"github.com/attune-hpc/attune/internal/testing/serviceuser"
	"github.com/attune-hpc/attune/packaging/systemd"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// hostileUser attacks; harmlessUser has a job that is tuned.
	hostileUser, harmlessUser = 65531, 65532
	// patience bounds whatever is waited for: what takes longer has failed.
	patience = 30 * time.Second
)

// policy lets users have their own processes tuned.
const policy = "service:\n  - mode: tune\n    owners: [role:user]\n"

// folder is where everything of the benchmark is.
type folder struct{ dir string }

func (f folder) path(name string) string { return filepath.Join(f.dir, name) }

// Folders of the services, below the folder: what they keep is as new for each site.
var kept = []string{"run", "state", "analyzer", "analyzer-state"}

// site is the services of a node: attuned and an Analyzer, with the rights of their
// units.
type site struct {
	folder
	analyzer, attuned *exec.Cmd
	conn              *grpc.ClientConn // as the harmless user
}

// startSite starts the services, and registers the harmless user's programs.
func (f folder) startSite(ctx context.Context) (s *site, err error) {
	s = &site{folder: f}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	for _, name := range kept {
		if err := errors.Join(os.RemoveAll(f.path(name)), os.Mkdir(f.path(name), 0o755)); err != nil {
			return s, err
		}
	}
	s.analyzer = exec.Command(f.path("bin/attune"), "analyzer", "serve", "--run-dir", f.path("analyzer"), "--state-dir", f.path("analyzer-state"),
		"--tunlet-dir", f.path("tunlets"), "--tunlet-dir", f.path("bin"))
	s.analyzer.Env = append(os.Environ(), "XDG_CACHE_HOME="+f.path("analyzer-state"))
	if err := serviceuser.Become(ctx, s.analyzer, f.path("analyzer"), f.path("analyzer-state")); err != nil {
		return s, err
	}
	if err := s.begin(ctx, s.analyzer, "analyzer", systemd.Analyzer, "analyzer/analyzer-health.sock", "analyzer", "analyzer-state"); err != nil {
		return s, err
	}
	s.attuned = exec.Command(f.path("bin/attuned"), "--config", os.DevNull, "--registry", "unix:"+f.path("analyzer/registry.sock"),
		"--run-dir", f.path("run"), "--state-dir", f.path("state"), "--policy", f.path("policy.yaml"), "--off-file", f.path("off"))
	if err := s.begin(ctx, s.attuned, "attuned", systemd.Attuned, "run/attuned.sock", "run", "state"); err != nil {
		return s, err
	}
	s.conn, err = grpc.NewClient("passthrough:///analyzer", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			return asuser.Dial(harmlessUser, f.path("analyzer/analyzer.sock"))
		}))
	if err != nil {
		return s, err
	}
	err = s.register(ctx)
	return s, err
}

// begin starts a service with the rights of its unit, and waits until it is ready.
func (s *site) begin(ctx context.Context, cmd *exec.Cmd, name, unit, socket string, writes ...string) error {
	log, err := os.OpenFile(s.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stderr = log
	rights := s.path(name + "-rights")
	if err := os.MkdirAll(rights, 0o755); err != nil {
		return err
	}
	for i, dir := range writes {
		writes[i] = s.path(dir)
	}
	if err := confined.Confine(cmd, s.path("confine"), rights, unit, writes...); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return measure.Await(ctx, patience, name, func() bool {
		status, _ := get(s.path(socket), "/readyz")
		return status == http.StatusOK
	})
}

// get asks a service that speaks HTTP at a socket.
func get(socket, path string) (status int, err error) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	answer, err := client.Get("http://service" + path)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// Registrations of the harmless user's: what their job and what is detected are called.
const (
	jobScript   = "numpy_tuned.py"
	plainScript = "numpy_plain.py"
	detectedJob = "77"
)

func (s *site) register(ctx context.Context) error {
	sessions := attunev1.NewSessionServiceClient(s.conn)
	for _, r := range []*attunev1.Registration{
		{Executable: debianPython, Arguments: jobScript, Mode: "tune"},
		{
			Executable: s.path("harmless/detected"), Mode: "observe", Tunlets: []string{"bench"},
			TunletOptions: map[string]*attunev1.TunletOptions{"bench": {Values: map[string]string{"points": "detected:detected_call"}}},
		},
	} {
		ctx, cancel := context.WithTimeout(ctx, patience)
		_, err := sessions.StartSession(ctx, &attunev1.StartSessionRequest{Registration: r})
		cancel()
		if err != nil {
			return fmt.Errorf("register %s: %w", r.GetExecutable(), err)
		}
	}
	return nil
}

// restarted counts the services that have ended.
func (s *site) restarted() (n int) {
	for _, cmd := range []*exec.Cmd{s.analyzer, s.attuned} {
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil || zombie(cmd.Process.Pid) {
			n++
		}
	}
	return n
}

// lostSessions are what attuned said of those of the harmless user.
func (f folder) lostSessions() (said []string, err error) {
	log, err := os.ReadFile(f.path("attuned.log"))
	for line := range strings.Lines(string(log)) {
		lost := strings.Contains(line, `msg="session is given up`) || strings.Contains(line, `msg="processes are not controlled"`)
		if lost && strings.Contains(line, fmt.Sprintf(" %s=%d ", logging.UserKey, harmlessUser)) {
			said = append(said, strings.TrimSpace(line))
		}
	}
	return said, err
}

// stop ends the services in order. One that has not been started is left out.
func (s *site) stop() (err error) {
	if s.conn != nil {
		err = s.conn.Close()
	}
	for _, cmd := range []*exec.Cmd{s.attuned, s.analyzer} {
		if cmd == nil || cmd.Process == nil {
			continue
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case end := <-ended:
			if end != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", filepath.Base(cmd.Args[0]), end))
			}
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			err = errors.Join(err, fmt.Errorf("%v does not end", cmd.Args), <-ended)
		}
	}
	return err
}
