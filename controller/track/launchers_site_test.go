// SPDX-License-Identifier: Apache-2.0

//go:build site

package track

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// execution is what the ranks of one start said of it.
type execution struct {
	keys, hosts map[string]bool
	ranks       []string
}

// executions reads what ranks said, by label.
func executions(out string) map[string]*execution {
	all := make(map[string]*execution)
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) != 5 || fields[0] != "rank" {
			continue
		}
		e := all[fields[1]]
		if e == nil {
			e = &execution{keys: make(map[string]bool), hosts: make(map[string]bool)}
			all[fields[1]] = e
		}
		e.keys[fields[2]], e.hosts[fields[4]] = true, true
		e.ranks = append(e.ranks, fields[3])
	}
	return all
}

// checkApart checks that each start has one key, all its ranks, on so many
// hosts, and no key of another.
func checkApart(t *testing.T, out string, labels []string, ranks []string, hosts int) {
	t.Helper()
	all := executions(out)
	seen := make(map[string]string)
	for _, label := range labels {
		e := all[label]
		if e == nil {
			t.Errorf("%s: no rank said anything", label)
			continue
		}
		slices.Sort(e.ranks)
		if len(e.keys) != 1 || !slices.Equal(e.ranks, ranks) || len(e.hosts) != hosts {
			t.Errorf("%s: jobs %v, ranks %v, hosts %v", label, e.keys, e.ranks, e.hosts)
		}
		for key := range e.keys {
			if other := seen[key]; other != "" {
				t.Errorf("%s and %s have the same job %s", label, other, key)
			}
			seen[key] = label
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// Without a batch system the launcher alone says what belongs together.
func TestRanksOfLocalLaunchers(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, launcher := range [][]string{
		{"mpirun.openmpi", "--allow-run-as-root", "--host", "localhost:4", "-n", "4"},
		{"mpirun.mpich", "-n", "4"},
	} {
		t.Run(launcher[0], func(t *testing.T) {
			var out strings.Builder
			for _, label := range []string{"first", "second"} {
				// A program between launcher and rank is usual.
				command := exec.CommandContext(t.Context(), launcher[0], append(launcher[1:], "sh", "-c", own+"; :")...)
				command.Env = append(os.Environ(), asRank+"="+label)
				text, err := command.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, text)
				}
				out.Write(text)
			}
			checkApart(t, out.String(), []string{"first", "second"}, []string{"0", "1", "2", "3"}, 1)
		})
	}
}
