// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/estimate"
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
}

// TestEstimateAfterLimits: a task that was ended at a limit of its memory needs more than that
// limit, whatever the samples of its memory say.
func TestEstimateAfterLimits(t *testing.T) {
	const gib = 1 << 30
	for _, tt := range []struct {
		name          string
		memory, asked uint64 // memory 0: not measured
		limit         string
		raised        float64 // 0: not at all
	}{
		{"at what was asked for", 40 * gib, 40 * gib, "memory.cgroup_peak_bytes: > 42949672960", 80 * gib},
		{"sampled long before", 5 * gib, 8 * gib, "memory.cgroup_peak_bytes: > 8589934592", 16 * gib},
		{"never sampled", 0, 8 * gib, "memory.cgroup_peak_bytes: > 8589934592", 16 * gib},
		{"at a limit of its own", 9 * gib, 0, "memory.resident_peak_bytes: 9663676416 > 8589934592", 18 * gib},
		{"at an unknown limit", 9 * gib, 0, "memory.cgroup_peak_bytes: > 0", 18 * gib},
		{"at a limit that is no number", 9 * gib, 0, "memory.resident_peak_bytes: 1 > Inf", 18 * gib},
		{"below what is asked for now", gib, gib, "memory.cgroup_peak_bytes: > 1073741824", 0},
		{"of addresses only", gib, 0, "memory.virtual_peak_bytes: 9663676416 > 8589934592", 0},
		{"of time", 9 * gib, 9 * gib, "wall_seconds: > 60", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := mustOpen(t, filepath.Join(t.TempDir(), "archive.db"))
			var tasks []*Task
			for n := range 10 {
				tasks = append(tasks, measured(n, 3*gib, 0))
			}
			ended := measured(20, tt.memory, 0)
			ended.Account.Exit = account.Exit{Type: account.ExitLimits, Limits: []string{"processes.peak: 9 > 8", tt.limit}}
			ended.Asked.MemoryBytes = tt.asked
			if tt.memory == 0 {
				ended.Account.Memory = account.Memory{}
			}
			mustAdd(t, s, append(tasks, ended)...)
			e, err := s.Estimate(t.Context(), "align", 0)
			if err != nil {
				t.Fatal(err)
			}
			m := e.MemoryBytes
			if isRaised := strings.Contains(m.Reason, "ended at its limit"); isRaised != (tt.raised > 0) || isRaised && m.Value != tt.raised || !isRaised && m.Value > 4*gib {
				t.Errorf("%.2f GiB: %s; want %.2f", m.Value/gib, m.Reason, tt.raised/gib)
			}
		})
	}
}

// TestEstimateAfterFailures: however many tasks failed in a row, an estimate rests on the latest
// that succeeded.
func TestEstimateAfterFailures(t *testing.T) {
	const gib = 1 << 30
	add := func(s *Store, from, many int, change func(*Task)) {
		var tasks []*Task
		for n := range many {
			task := measured(from+n, 3*gib, 0)
			change(task)
			tasks = append(tasks, task)
		}
		mustAdd(t, s, tasks...)
	}
	succeed := func(*Task) {}
	fail := func(t *Task) { t.Account.Exit.Code = new(1) }
	exceed := func(t *Task) {
		t.Account.Exit = account.Exit{Type: account.ExitLimits, Limits: []string{"memory.cgroup_peak_bytes: > 8589934592"}}
	}
	for _, tt := range []struct {
		name           string
		good           int
		tasks, leftOut int
	}{
		{"few that succeeded", 40, 40, 502},
		{"more than are looked at", estimate.Window + 50, estimate.Window, 501}, // not the one before all
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := mustOpen(t, filepath.Join(t.TempDir(), "archive.db"))
			add(s, 0, 1, fail)
			add(s, 1, tt.good, succeed)
			add(s, 1+tt.good, 1, exceed)
			add(s, 2+tt.good, estimate.Window, fail)
			e, err := s.Estimate(t.Context(), "align", 0)
			if err != nil {
				t.Fatal(err)
			}
			if e.Tasks != tt.tasks || e.LeftOut != tt.leftOut || e.MemoryBytes.Value != 16*gib {
				t.Errorf("%d tasks, %d left out, %.2f GiB; want %d, %d and 16", e.Tasks, e.LeftOut, e.MemoryBytes.Value/gib, tt.tasks, tt.leftOut)
			}
		})
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
