// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/controller/node"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// local is an HTTP client of the daemon's socket.
func (s *site) local() *http.Client {
	return &http.Client{Timeout: patience.Limit, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.path("run/attuned.sock"))
		},
	}}
}

// get asks the daemon.
func (s *site) get(path string) (status int, body string) {
	s.t.Helper()
	answer, err := s.local().Get("http://attuned" + path)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// handOver posts a task.
func (s *site) handOver(task any) (status int, body string) {
	s.t.Helper()
	text, err := json.Marshal(task)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := s.local().Post("http://attuned/v1/task", "application/json", strings.NewReader(string(text)))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	out, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(out)
}

// held is a shell that executes the worker when it is told its environment.
const held = `while read -r line && [ "$line" ]; do export "$line"; done; exec "$0"`

// A batch system hands over a task of a user before its exec: the program comes
// to the start gate by itself, so that its points are in place before main. The
// Analyzer is told of the job.
func TestTaskIsHandedOver(t *testing.T) {
	s := mustSiteOnly(t)
	a := &scripted{points: []*attunev1.PointWant{workPoint()}, registered: func(r *attunev1.Registration) { s.put(r) }}
	serveScript(t, a, s.path("a.sock"))
	s.write("policy.yaml", "service:\n  - mode: tune\n    owners: [role:user]\n")
	worker := s.worker("worker")
	c := a.reset()
	daemon := s.attuned()
	patience.Until(t, "the daemon", func() bool { status, _ := s.get("/readyz"); return status == http.StatusOK })

	command := exec.Command("sh", "-c", held, worker)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	target := targets.Launch(t, command)
	task := node.Task{PID: target.PID, UID: nobody, Mode: "tune", Job: node.TaskJob{Kind: "slurm", ID: "77", Step: "0"}}
	var status int
	var env string
	patience.Until(t, "a session that is ready in the time that a job waits", func() bool {
		status, env = s.handOver(task)
		return status != http.StatusServiceUnavailable
	})
	if log, err := os.ReadFile(s.path("state/audit.jsonl")); err != nil || !strings.Contains(string(log), `"what":"POST /v1/task"`) {
		t.Errorf("audit log: %v\n%s", err, log)
	}
	if status != http.StatusOK || !strings.Contains(env, "LD_PRELOAD=") || !strings.Contains(env, "ATTUNE_SOCKET=") || !strings.Contains(env, "ATTUNE_FILTERS=") {
		t.Fatalf("answer %d: %s", status, env)
	}
	again := task
	if status, text := s.handOver(again); status != http.StatusOK || text != env {
		t.Errorf("once more: answer %d: %s", status, text)
	}
	again.Job.ID = "78" // a process has one session
	if status, text := s.handOver(again); status != http.StatusForbidden || !strings.Contains(text, "belongs to the session of registration slurm-77-65534") {
		t.Errorf("for another job: answer %d: %s", status, text)
	}
	if err := target.Say(env); err != nil { // ends with an empty line
		t.Fatal(err)
	}
	target.Expect(t, "ready")
	for { // the shell first
		process := patience.Receive(t, "the worker", c.processes)
		if strings.HasSuffix(process.GetExecutable(), "worker") && instrumented(process) {
			break
		}
	}
	checkCounts(t, c)
	if hello := a.lastHello(); hello.GetRegistration() != "slurm-77-65534" || hello.GetJob().Key() != "slurm/77" || hello.GetUser().GetUid() != nobody {
		t.Errorf("controller says %v", hello)
	}
	checkControlledOnce(t, target.PID)
	if _, status := s.get("/v1/status"); !strings.Contains(status, "slurm-77-65534") {
		t.Errorf("status: %s", status)
	}
	checkUnharmed(t, target)
	s.stop(daemon)
}

func instrumented(p *attunev1.Process) bool {
	for _, m := range p.GetMechanisms() {
		if m.GetName() == "dmlib" {
			return m.GetAvailable()
		}
	}
	return false
}

// What must not be handed over is refused, with its reason.
func TestTaskIsRefused(t *testing.T) {
	s := mustSiteOnly(t)
	daemon := s.attuned() // whose policy says nothing of users
	patience.Until(t, "the daemon", func() bool { status, _ := s.get("/readyz"); return status == http.StatusOK })
	job := node.TaskJob{Kind: "slurm", ID: "77"}
	tests := []struct {
		name   string
		task   any
		status int
		wants  string
	}{
		{"no JSON", "pid", http.StatusBadRequest, "is no JSON"},
		{"no process", node.Task{Mode: "tune", Job: job}, http.StatusBadRequest, "is no process id"},
		{"ended", node.Task{PID: 1 << 22, Mode: "tune", Job: job}, http.StatusBadRequest, "4194304"},
		{"mode", node.Task{PID: os.Getpid(), Mode: "spoil", Job: job}, http.StatusBadRequest, "none of observe, advise, tune"},
		{"job", node.Task{PID: os.Getpid(), Mode: "tune", Job: node.TaskJob{Kind: "slurm", ID: "../7"}}, http.StatusBadRequest, "is no name"},
		{"objective", node.Task{PID: os.Getpid(), Mode: "tune", Objective: "command:id", Job: job}, http.StatusBadRequest, "runs no command of a user's"},
		{"policy", node.Task{PID: os.Getpid(), UID: 1, Mode: "tune", Job: job}, http.StatusForbidden, "policy"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if status, text := s.handOver(test.task); status != test.status || !strings.Contains(text, test.wants) {
				t.Errorf("answer %d: %s, want %d with %q", status, text, test.status, test.wants)
			}
		})
	}
	t.Run("another user's", func(t *testing.T) {
		task := fmt.Sprintf(`{"pid": %d, "uid": %d, "mode": "observe", "job": {"kind": "slurm", "id": "1"}}`, os.Getpid(), nobody)
		curl := exec.Command("curl", "--silent", "--unix-socket", s.path("run/attuned.sock"), "--data", task, "http://attuned/v1/task")
		curl.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if out, err := curl.CombinedOutput(); err != nil || !strings.Contains(string(out), "processes of their own") {
			t.Errorf("answer %q, %v", out, err)
		}
	})
	s.stop(daemon)
}
