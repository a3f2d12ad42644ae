// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestSessionIsAccountedFor: what a job took that the node found by itself is in its
// report as wait4(2) tells it, with what was too brief to be seen. Of a process that had
// begun before it was meant, only samples tell, and the report says so.
func TestSessionIsAccountedFor(t *testing.T) {
	s := mustSite(t, analyzer.Config{Mode: "observe", Command: []string{"job"}, JobID: "accounted", NoTunlets: true})
	program := s.path("program")
	if out, err := exec.Command("cp", "/bin/sh", program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	early := exec.Command(program, "-c", "read line")
	stdin, err := early.StdinPipe()
	if err == nil {
		err = early.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	daemon := s.attuned()
	s.register("r1", program, "observe")
	// The kernel has the name by then, if it tells of executions by then.
	patience.Until(t, "a first process", func() bool { return s.analyzer.Snapshot().Processes == 1 && s.said("by=bpf") > 0 })
	job := exec.Command(program, "-c", `read line; for i in 1 2 3 4 5 6 7 8 9 10; do
		/bin/true; dd if=/dev/zero of=/dev/null bs=64k count=200 2>/dev/null | cat; done
		yes | head -c 300000000 >/dev/null; `+program+` -c 'exec sleep 0.3'`)
	begin, err := job.StdinPipe()
	if err == nil {
		err = job.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "a second one", func() bool { return s.analyzer.Snapshot().Processes == 2 })
	if _, err := io.WriteString(begin, "\n"); err != nil {
		t.Error(err)
	}
	if err := job.Wait(); err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	_ = early.Wait() // read fails at the end of its input
	patience.Until(t, "the end of all", func() bool { return s.analyzer.Snapshot().Processes == 0 })
	s.stop(daemon)
	checkTaken(t, s.analyzer.Finish(context.Background(), nil).Account, early.Process.Pid, job.ProcessState)
}

// checkTaken compares the account of a process that began early, and of a tree of which
// wait4(2) tells.
func checkTaken(t *testing.T, a *account.Account, early int, tree *os.ProcessState) {
	t.Helper()
	if a == nil {
		t.Fatal("no account")
	}
	cpu, all := (tree.UserTime() + tree.SystemTime()).Seconds(), 0.0
	for _, p := range a.Tree {
		if p.PID == early {
			if p.IO.Written != nil {
				t.Errorf("accounted for: %+v", p)
			}
			continue
		}
		if p.CPUSeconds == nil || p.IO.Written == nil || p.Faults.Minor == nil {
			t.Errorf("not accounted for: %+v", p)
			continue
		}
		all += *p.CPUSeconds
	}
	// wait4 has not what processes take after their parents have been told of their end.
	slack, after := max(0.001, cpu/1000), 5e-4*float64(len(a.Tree))
	if off := all - cpu; off < -slack || off > slack+after {
		t.Errorf("CPU time %v, wait4 says %v", all, cpu)
	}
	const written = 10*200*65536*2 + 300_000_000 // by dd and cat; by head
	if a.IO.Written == nil || *a.IO.Written < written {
		t.Errorf("%+v written, want %d at least", a.IO.Written, uint64(written))
	}
	// The early one; two shells; each time true, dd and cat; yes, head, and sleep, some in
	// a subshell before.
	if a.Processes.Total == nil || *a.Processes.Total < 35 || *a.Processes.Total > 50 {
		t.Errorf("%+v", a.Processes)
	}
	if a.Accuracy["cpu_seconds"] != account.Bound || !strings.Contains(a.Missing["cpu_seconds"], "did not account for") {
		t.Errorf("CPU time is %s: %s", a.Accuracy["cpu_seconds"], a.Missing["cpu_seconds"])
	}
}
