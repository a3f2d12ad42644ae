// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFamily(t *testing.T) {
	// 10 forked 11 and 12, 12 forked 13; this process is 14, below 12, with a child 15.
	all := table{1: 0, 10: 1, 11: 10, 12: 10, 13: 12, 14: 12, 15: 14, 20: 1}
	for name, row := range map[string]struct{ pids, want []int }{
		"a process without children":     {[]int{20}, []int{20}},
		"its children, and theirs":       {[]int{10}, []int{10, 11, 12, 13}},
		"one that is below another":      {[]int{13, 10}, []int{13, 10, 11, 12}},
		"one that is gone":               {[]int{99}, []int{99}},
		"an ancestor that has a sibling": {[]int{12, 20}, []int{12, 20, 13}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, all.family(row.pids, 14)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A process is found by the link that it was started by.
func TestNamed(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "procs-test-sleeper")
	if err := os.Symlink(sleep, link); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(link, "100")
	mustExecute(t, cmd)
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	for _, pattern := range []string{"procs-test-sleeper", "procs-test-*"} {
		if pids, err := Named(pattern); err != nil || !slices.Equal(pids, []int{cmd.Process.Pid}) {
			t.Errorf("%s: %v, %v", pattern, pids, err)
		}
	}
	for _, pattern := range []string{"", "*", "**", "[", "procs-test-nobody", filepath.Base(os.Args[0])} {
		if pids, err := Named(pattern); err == nil {
			t.Errorf("%q: %v", pattern, pids)
		}
	}
}
