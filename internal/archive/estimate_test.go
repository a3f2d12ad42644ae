// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/account"
)

// measured makes the n-th task of a category with memory and input.
func measured(n int, memory, input uint64) *Task {
	t := newTask("align", n)
	t.Account.WallSeconds = 100
	t.Account.Memory.Resident = &memory
	t.Account.Disk.Bytes = new(uint64(1 << 30))
	if input > 0 {
		t.InputBytes = &input
	}
	return t
}

func TestEstimate(t *testing.T) {
	const gib = 1 << 30
	s := mustOpen(t, filepath.Join(t.TempDir(), "archive.db"))
	for n := range 40 {
		input := uint64(n%8+1) * gib
		mustAdd(t, s, measured(n, 2*input+gib, input))
	}
	failed := measured(50, 100*gib, gib)
	failed.Account.Exit.Code = new(1)
	mustAdd(t, s, failed)
	for _, tt := range []struct {
		name       string
		input      float64
		least, top float64
		reason     string
	}{
		{"a small input", 1 * gib, 3 * gib, 4 * gib, "with input sizes"},
		{"a large one", 8 * gib, 17 * gib, 18 * gib, "with input sizes"},
		{"larger than all", 16 * gib, 33 * gib, 34.5 * gib, "with input sizes"},
		{"not known", 0, 17 * gib, 18.5 * gib, "over 40 tasks"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := s.Estimate(t.Context(), "align", tt.input)
			if err != nil {
				t.Fatal(err)
			}
			if m := e.MemoryBytes; m.Value < tt.least || m.Value > tt.top || !strings.Contains(m.Reason, tt.reason) || !strings.Contains(m.Reason, "GBh") {
				t.Errorf("memory %.2f GiB: %s; want %.2f to %.2f", m.Value/gib, m.Reason, tt.least/gib, tt.top/gib)
			}
			if e.Tasks != 40 || e.LeftOut != 1 || e.Cores.Value != 2 || e.WallSeconds.Value != 120 || e.DiskBytes.Value < gib || e.DiskBytes.Value > 1.3*gib {
				t.Errorf("%+v, cores %v, time %v, disk %v", e, e.Cores, e.WallSeconds, e.DiskBytes)
			}
		})
	}
	killed := measured(60, 40*gib, 0)
	killed.Account.Exit = account.Exit{Type: account.ExitLimits}
	killed.Asked.MemoryBytes = 40 * gib
	mustAdd(t, s, killed)
	if e, err := s.Estimate(t.Context(), "align", gib); err != nil || e.MemoryBytes.Value != 80*gib || !strings.Contains(e.MemoryBytes.Reason, "at its limit") {
		t.Errorf("after one was ended at its limit: %+v, %v", e.MemoryBytes, err)
	}
}

func TestEstimateOfNothing(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "archive.db"))
	failed := newTask("bad", 1)
	failed.Account.Exit.Code = new(1)
	bare := newTask("bare", 1)
	bare.Account.Memory, bare.Account.CoresAverage = account.Memory{}, nil
	mustAdd(t, s, failed, bare)
	for _, category := range []string{"nothing", "bad"} {
		if _, err := s.Estimate(t.Context(), category, 0); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", category, err)
		}
	}
	e, err := s.Estimate(t.Context(), "bare", 0)
	if err != nil || e.MemoryBytes != nil || e.DiskBytes != nil || e.Cores != nil || e.WallSeconds == nil {
		t.Errorf("%+v, %v", e, err)
	}
}

// What a page cache holds is no need of memory, and pages that are shared count once.
func TestMemory(t *testing.T) {
	for _, tt := range []struct {
		name    string
		numbers map[string]float64
		want    float64
	}{
		{"all", map[string]float64{"memory.cgroup_peak_bytes": 400, "memory.resident_peak_bytes": 30, "memory.proportional_peak_bytes": 20, "memory.anonymous_peak_bytes": 8}, 20},
		{"resident", map[string]float64{"memory.cgroup_peak_bytes": 400, "memory.resident_peak_bytes": 30}, 30},
		{"never below the anonymous", map[string]float64{"memory.proportional_peak_bytes": 20, "memory.anonymous_peak_bytes": 25}, 25},
		{"the group's alone", map[string]float64{"memory.cgroup_peak_bytes": 400}, 400},
	} {
		if got, known := (&Summary{Numbers: tt.numbers}).Memory(); got != tt.want || !known {
			t.Errorf("%s: %v, %t", tt.name, got, known)
		}
	}
	if _, known := (&Summary{}).Memory(); known {
		t.Error("memory of nothing")
	}
}
