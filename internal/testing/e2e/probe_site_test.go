// SPDX-License-Identifier: Apache-2.0

//go:build site

package e2e

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestProbeAtASite measures in a process that a node's controller has for the
// Analyzer's service, by the commands that people use.
func TestProbeAtASite(t *testing.T) {
	s := startServices(t)
	s.until("in a session", func() bool { return len(s.sessions()) == 1 && s.sessions()[0].GetRunning() == 1 })
	session, pid := s.sessions()[0].GetId(), strconv.Itoa(s.program.Process.Pid)
	probe := func(command string, args ...string) string {
		t.Helper()
		args = append([]string{"probe", command, "--analyzer", "unix:" + s.path("analyzer-run/analyzer.sock"), "--session", session}, args...)
		out, err := exec.Command(attune, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("attune %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	const point = "libc.so.6:malloc"
	if got := probe("watch", "--json", "--for", "2s", pid, point); !strings.Contains(got, `"state":"placed"`) || !strings.Contains(got, `"hits":`) {
		t.Errorf("watch: %s", got)
	}
	probe("add", pid, point)
	patience.Until(t, "the point to be placed", func() bool {
		got := probe("list")
		return strings.Contains(got, "%1") && strings.Contains(got, "python3") && strings.Contains(got, "placed")
	})
	at := []string{"--analyzer", "unix:" + s.path("analyzer-run/analyzer.sock"), "--session"}
	for _, row := range []struct {
		what string
		args []string // the last one is completed
		want string
	}{
		{"sessions", append([]string{"list"}, append(at, "")...), session + "\t"},
		{"processes", append([]string{"add"}, append(at, session, "")...), pid + "\n"},
		{"processes with points", append([]string{"remove"}, append(at, session, "")...), pid + "\n"},
		{"points", append([]string{"remove"}, append(at, session, pid, "")...), "%1\t" + point},
	} {
		patience.Until(t, row.what+" to be completed", func() bool {
			out, err := exec.Command(attune, append([]string{"__complete", "probe"}, row.args...)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(out), row.want)
		})
	}
	if got := probe("remove", pid); !strings.Contains(got, "removed: "+pid+" "+point) {
		t.Errorf("remove: %s", got)
	}
}
