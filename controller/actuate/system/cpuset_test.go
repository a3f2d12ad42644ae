// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// A cpuset is left alone on kernels on which a thread in it, or in one below, would lose the CPUs
// that it is bound to.
func TestBoundThreadInCpuset(t *testing.T) {
	const old, now = 6<<16 | 1<<8, 6<<16 | 2<<8
	tests := []struct {
		name      string
		threads   string // the list of them, and the file of the CPUs
		effective string
		kernel    uint32
		cpus      string // of the cgroup; empty: those of the thread
		refused   bool
	}{
		{"not bound", "cgroup.threads", "cpuset.cpus.effective", old, "", false},
		{"bound", "cgroup.threads", "cpuset.cpus.effective", old, "0-9999", true},
		{"bound in a child", "child/cgroup.threads", "cpuset.cpus.effective", old, "0-9999", true},
		{"bound, version 1", "tasks", "cpuset.effective_cpus", old, "0-9999", true},
		{"bound on a kernel that keeps it", "cgroup.threads", "cpuset.cpus.effective", now, "0-9999", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			k, dir := mustKeeper(t), t.TempDir()
			cpus := test.cpus
			if cpus == "" {
				cpus = mustText(t)(affinityOf(k.PID))
			}
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(test.threads)), 0o700); err != nil {
				t.Fatal(err)
			}
			files.Write(t, filepath.Join(dir, test.threads), fmt.Sprintln(k.PID), 0o644)
			files.Write(t, filepath.Join(dir, test.effective), cpus+"\n", 0o644)
			err := mayRebindOn(test.kernel, dir)
			if refused := err != nil; refused != test.refused || refused && !strings.Contains(err.Error(), fmt.Sprintf("thread %d is bound", k.PID)) {
				t.Errorf("%v", err)
			}
		})
	}
}
