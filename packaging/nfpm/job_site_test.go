// SPDX-License-Identifier: Apache-2.0

//go:build site && full

package nfpm

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
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
	policy := files.Read(t, filepath.Join(s.root, "usr/share/doc/attuned/examples/policy.yaml"))
	for name, text := range map[string]string{
		"policy.yaml":   string(policy),
		"analyzer.yaml": "registrations:\n  python: {app: 'python3*', user: alice, mode: tune}\n",
	} {
		files.Write(t, filepath.Join(s.root, "etc/attune", name), text, 0o644)
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

// program says again and again what Attune changes in it, while another program runs
// whose threads wait for one that computes.
const program = `
import runpy, sys, threading, time
def say():
    while True:
        print("interval", sys.getswitchinterval(), flush=True)
        time.sleep(0.1)
threading.Thread(target=say, daemon=True).start()
runpy.run_path("/home/alice/convoy.py", run_name="__main__")
`

// start starts the program.
func (s *system) start(t *testing.T) *job {
	t.Helper()
	convoy := files.Read(t, filepath.Join(repository, "bench/workloads/python_convoy.py"))
	home := filepath.Join(s.root, "home/alice")
	for name, text := range map[string]string{"convoy.py": string(convoy), "job.py": program} {
		files.Write(t, filepath.Join(home, name), text, 0o644)
	}
	j := &job{output: filepath.Join(home, "output"), ended: make(chan error, 1)}
	cmd := s.command(t.Context(), "su", "alice", "-c", "exec python3 ~/job.py 1000000 >~/output 2>&1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { j.ended <- cmd.Wait() }()
	j.goesOn(t)
	return j
}

// changed says whether the program runs with another interval than Python's.
func (j *job) changed(t *testing.T) bool {
	t.Helper()
	text := files.Read(t, j.output)
	said := bytes.Split(text, []byte("interval "))
	return !bytes.HasPrefix(said[len(said)-1], []byte("0.005\n"))
}

// goesOn waits until the job has done more, and has said so.
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
		if err != nil || len(now) <= len(before) {
			return false
		}
		more := now[len(before):]
		return bytes.Contains(more, []byte("progress")) && bytes.HasSuffix(more, []byte("\n")) && bytes.Count(more, []byte("interval")) > 1
	})
}
