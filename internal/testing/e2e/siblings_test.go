// SPDX-License-Identifier: Apache-2.0

//go:build e2e && full

package e2e

import (
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
)

// bagOfJobs runs eight jobs for as long as it is told, four at a time; the second
// four when a line comes.
const bagOfJobs = `start() { for i in "$@"; do /usr/bin/python3 "$script" $seconds.$i & jobs="$jobs $!"; done; }
script=$0 seconds=$1
start 1 2 3 4; read line; kill $jobs; wait
start 5 6 7 8; wait`

// TestBagOfJobs runs eight jobs of one program. In one of them the change is tried.
// The others, also those that come later, take its verdict over: the change is in
// force in each, read back, and compared with nothing.
func TestBagOfJobs(t *testing.T) {
	p, file := startTuned(t, []string{"--tunlet", "malloc"}, "sh", "-c", bagOfJobs, mustAbs(t, workloads+"numpy_storm.py"), lasting)
	if err := p.await(t, kept("malloc", 4)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(p.stdin, "\n"); err != nil {
		t.Fatal(err)
	}
	if err := p.await(t, kept("malloc", 8)); err != nil {
		t.Fatal(err)
	}
	p.end(t, syscall.SIGTERM)
	tried, spared := map[int]bool{}, map[int]bool{}
	for _, c := range mustReadReport(t, file).Changes {
		_, asked, _ := strings.Cut(c.Action, "=")
		switch {
		case c.Verdict != report.VerdictKept: // an error of the verdict, after which it was tried again
		case c.AppliedSeconds == nil || c.New.String() != asked:
			t.Errorf("%s in process %d: read back %s: %s", c.Action, c.Process, c.New, c.Reason)
		case c.Objective != nil:
			tried[c.Process] = true
		case strings.HasPrefix(c.Reason, "tried in another process of the program: gain: "):
			spared[c.Process] = true
		}
	}
	if len(tried) != 1 || len(spared) != 7 {
		t.Errorf("kept after a trial in processes %v, without one in %v, want 1 and 7", tried, spared)
	}
}
