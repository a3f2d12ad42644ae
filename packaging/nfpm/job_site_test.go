// SPDX-License-Identifier: Apache-2.0

//go:build site && full

package nfpm

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// bring copies packages into the system.
func (s *system) bring(t *testing.T, name, dir string) {
	t.Helper()
	if err := os.CopyFS(filepath.Join(s.root, "packages", name), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
}

// configure has the services of a machine tune Python.
func (s *system) configure(t *testing.T) {
	t.Helper()
	policy, err := os.ReadFile(filepath.Join(s.root, "usr/share/doc/attuned/examples/policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"policy.yaml":   string(policy),
		"analyzer.yaml": "registrations:\n  python: {app: 'python3*', user: alice, mode: tune}\n",
	} {
		if err := os.WriteFile(filepath.Join(s.root, "etc/attune", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// log is what the node's service has written.
func (s *system) log(t *testing.T) string {
	t.Helper()
	return s.must(t, "journalctl", "--no-pager", "--unit", "attuned")
}

// job is a program of alice's that runs.
type job struct {
	output string
	ended  chan error
}

// start starts a program whose threads wait for one that computes.
func (s *system) start(t *testing.T) *job {
	t.Helper()
	const program = "python_convoy.py"
	text, err := os.ReadFile(filepath.Join(repository, "bench/workloads", program))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.root, "home/alice", program), text, 0o644); err != nil {
		t.Fatal(err)
	}
	j := &job{output: filepath.Join(s.root, "home/alice/output"), ended: make(chan error, 1)}
	cmd := s.command(t.Context(), "su", "alice", "-c", "exec python3 ~/"+program+" 1000000 >~/output 2>&1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { j.ended <- cmd.Wait() }()
	j.goesOn(t)
	return j
}

// goesOn waits until the job has done more.
func (j *job) goesOn(t *testing.T) {
	t.Helper()
	before, _ := os.ReadFile(j.output) // there may be none yet
	patience.Until(t, "the job", func() bool {
		select {
		case err := <-j.ended:
			t.Fatalf("the job has ended: %v: %s", err, before)
		default:
		}
		now, err := os.ReadFile(j.output)
		return err == nil && len(now) > len(before) && bytes.Contains(now[len(before):], []byte("progress"))
	})
}
