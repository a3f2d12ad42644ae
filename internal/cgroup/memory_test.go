// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
)

func TestLeftBelow(t *testing.T) {
	const v1, v2 = "4:memory:/job/step\n0::/\n", "0::/job/step\n"
	for _, tt := range []struct {
		name, membership string
		files            map[string]string
		want             uint64
	}{
		{"no limit", v2, map[string]string{"job/step/memory.max": "max\n", "job/step/memory.current": "5\n"}, math.MaxUint64},
		{"nothing there", v2, nil, math.MaxUint64},
		{"its own", v2, map[string]string{"job/step/memory.max": "1000\n", "job/step/memory.current": "300\n"}, 700},
		{"unused file pages are free", v2, map[string]string{
			"job/step/memory.max": "1000\n", "job/step/memory.current": "300\n", "job/step/memory.stat": "anon 100\ninactive_file 200\n",
		}, 900},
		{"that above is tighter", v2, map[string]string{
			"job/step/memory.max": "1000\n", "job/step/memory.current": "300\n", "job/memory.max": "500\n", "job/memory.current": "400\n",
		}, 100},
		{"more than allowed is used", v2, map[string]string{"job/memory.max": "100\n", "job/memory.current": "120\n"}, 0},
		{"version 1", v1, map[string]string{
			"job/memory.limit_in_bytes": "1000\n", "job/memory.usage_in_bytes": "600\n", "job/memory.stat": "inactive_file 1\ntotal_inactive_file 50\n",
		}, 450},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mounts := mounted(t, tt.membership == v2, "memory", tt.files)
			if got := leftBelow(tt.membership, mounts); got != tt.want {
				t.Errorf("%d bytes, want %d", got, tt.want)
			}
		})
	}
}

// mounted makes a hierarchy of files, of version 2 or of one controller, and returns
// the line of mountinfo for it.
func mounted(t *testing.T, unified bool, controller string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if unified {
		return fmt.Sprintf("1 0 0:1 / %s rw - cgroup2 cgroup2 rw\n", dir)
	}
	return fmt.Sprintf("1 0 0:1 / %s rw - cgroup cgroup rw,%s\n", dir, controller)
}

func TestAvailableMemory(t *testing.T) {
	node, err := procid.ReadField("/proc/meminfo", "MemTotal")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := AvailableMemory(os.Getpid()); err != nil || got == 0 || got > node {
		t.Errorf("%d bytes, %v; want some, and not more than the node's %d", got, err, node)
	}
	if _, err := AvailableMemory(math.MaxInt32); !errors.Is(err, procid.ErrGone) {
		t.Errorf("of no process: %v, want it to be gone", err)
	}
}
