// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestLimitMemory: each version has files of its own, and says in others that it killed.
func TestLimitMemory(t *testing.T) {
	for _, tt := range []struct {
		name     string
		made     func(dir string) *Made
		limits   map[string]string
		kills    string
		text     string
		peaks    string
		peak     string
		wantKill bool
	}{
		{"version 1", func(dir string) *Made { return &Made{memory: dir} }, map[string]string{"memory.limit_in_bytes": "1000"},
			"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", "memory.max_usage_in_bytes", "1000\n", true},
		{"version 2", func(dir string) *Made { return &Made{v2: dir} }, map[string]string{"memory.max": "1000", "memory.oom.group": "1"},
			"memory.events", "low 0\noom 1\noom_kill 1\noom_group_kill 1\n", "memory.peak", "1000\n", true},
		{"another's limit of version 1", func(dir string) *Made { return &Made{memory: dir} }, nil,
			"memory.oom_control", "oom_kill 1\n", "memory.max_usage_in_bytes", "500\n", false},
		{"another's limit of version 2", func(dir string) *Made { return &Made{v2: dir} }, nil,
			"memory.events", "oom 0\noom_kill 1\n", "memory.peak", "500\n", false},
		{"no peak before Linux 5.19", func(dir string) *Made { return &Made{v2: dir} }, nil, "memory.events", "oom 1\noom_kill 1\n", "other", "", true},
		{"nothing killed", func(dir string) *Made { return &Made{v2: dir} }, nil, "memory.events", "low 0\noom 1\noom_kill 0\n", "memory.peak", "1000\n", false},
		{"not said", func(dir string) *Made { return &Made{memory: dir} }, nil, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", "memory.max_usage_in_bytes", "1000\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			m := tt.made(dir)
			for name := range tt.limits {
				files.Write(t, filepath.Join(dir, name), "", 0o600)
			}
			if err := m.LimitMemory(1000); err != nil {
				t.Fatal(err)
			}
			for name, want := range tt.limits {
				if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
					t.Errorf("%s has %q, %v; want %q", name, got, err, want)
				}
			}
			if m.KilledForMemory(1000) {
				t.Error("killed, says a group without the file")
			}
			for name, text := range map[string]string{tt.kills: tt.text, tt.peaks: tt.peak} {
				files.Write(t, filepath.Join(dir, name), text, 0o600)
			}
			if m.KilledForMemory(1000) != tt.wantKill {
				t.Errorf("killed: %v, want %v", !tt.wantKill, tt.wantKill)
			}
		})
	}
}

// TestDroppedV2: without a group there is nothing to read, least of all in the working directory.
func TestDroppedV2(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"memory.current": "1", "memory.peak": "2", "memory.events": "oom_kill 3\n"} {
		files.Write(t, name, text, 0o600)
	}
	dir := t.TempDir()
	file, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := &Made{v2: dir, file: file}
	if !m.MemoryInV2() {
		t.Error("memory is not that of version 2, the only one")
	}
	if err := m.DropV2(); err != nil {
		t.Fatal(err)
	}
	if n, known := m.Memory(); known {
		t.Errorf("charged with %d bytes", n)
	}
	if n, known := m.MemoryPeak(); known {
		t.Errorf("charged with %d bytes at most", n)
	}
	if m.KilledForMemory(0) || m.MemoryInV2() {
		t.Errorf("killed: %v, memory is that of version 2: %v", m.KilledForMemory(0), m.MemoryInV2())
	}
}

// TestOwnGroup: a group is its maker's alone, whoever else has its process id, in another pid namespace or before.
func TestOwnGroup(t *testing.T) {
	const membership = "0::/job\n"
	mounts := mounted(t, true, "", map[string]string{"job/cgroup.procs": ""})
	first, err := makeBelow(membership, mounts, "")
	if err != nil {
		t.Fatal(err)
	}
	second, err := makeBelow(membership, mounts, "")
	if err != nil {
		t.Fatal(err)
	}
	if first == second {
		t.Errorf("both are %s", first)
	}
}

// TestStaleGroups: the group of a maker who is gone is removed, and that of another pid namespace, whose process
// ids say nothing here, is not.
func TestStaleGroups(t *testing.T) {
	const membership, gone = "0::/job\n", "999999999-0"
	mounts := mounted(t, true, "", map[string]string{"job/cgroup.procs": ""})
	own, err := makeBelow(membership, mounts, "")
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := procid.Namespace()
	if err != nil {
		t.Fatal(err)
	}
	of := func(namespace uint64) string {
		return filepath.Join(filepath.Dir(own), fmt.Sprintf("%s%d-%s", madePrefix, namespace, gone))
	}
	for _, dir := range []string{of(namespace), of(namespace + 1)} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := makeBelow(membership, mounts, ""); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{own: true, of(namespace): false, of(namespace + 1): true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", dir, err == nil, want)
		}
	}
}
