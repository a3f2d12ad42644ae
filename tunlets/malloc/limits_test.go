// SPDX-License-Identifier: Apache-2.0

package malloc_test

import (
	"strings"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/malloc"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func TestSilent(t *testing.T) {
	growth := tunlettest.Computing()
	growth.Rates[sdk.MinorFaults] = 250_000
	growth.Rates[sdk.CPUSystem] = 0.4e9
	growth.Rates[sdk.ResidentBytes] = 250_000 * 4096
	delete(growth.Gauges, sdk.ResidentBytes)
	growth.Hits = allocations("malloc", 1_000, mib)

	reader := tunlettest.Computing()
	reader.Rates[sdk.MinorFaults] = 100_000 // maps a file, reads it, unmaps it
	reader.Rates[sdk.CPUSystem] = 0.5e9

	forks := tunlettest.Computing()
	forks.Rates[sdk.MinorFaults] = 50_000 // copies on write, small blocks
	forks.Rates[sdk.CPUSystem] = 0.3e9
	forks.Hits = allocations("malloc", 1e6, 64)

	golang := storm()
	golang.Objects = []string{"/usr/bin/served", "linked:go"}
	golang.Hits = nil

	few := storm()
	few.Hits = allocations("malloc", 20, mib) // explains 0.6 % of the faults

	for _, tt := range []struct {
		name    string
		process *tunlettest.Process
		hooked  bool
	}{
		{"computes", tunlettest.Computing(), false},
		{"touches memory for the first time", growth, false},
		{"reads a mapped file", reader, true},
		{"forks and copies on write", forks, true},
		{"few large blocks", few, true},
		{"allocates by itself", golang, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, malloc.New, nil)
			h.StartProcess(tt.process)
			rounds, hooked := 0, 0
			for h.Elapsed() < 40*time.Second {
				h.Round()
				rounds++
				if len(h.Points()) > 0 {
					hooked++
				}
			}
			if len(h.Proposals) > 0 {
				t.Errorf("proposed %v", h.Proposals[0])
			}
			if (hooked > 0) != tt.hooked || hooked > rounds/8 {
				t.Errorf("hooks in place in %d of %d rounds, want some: %v, and an eighth at most", hooked, rounds, tt.hooked)
			}
		})
	}
}

// Where samples are far apart, and the blocks of the first ones explain nothing yet, it is
// not one look that decides.
func TestSlowSamples(t *testing.T) {
	h := tunlettest.Start(t, malloc.New, nil)
	h.Pace = 250 * time.Millisecond
	p := storm()
	counted := 0
	p.Hits = func(point *attunev1.MeasurePoint) (float64, uint64) {
		if point.GetHook() != "malloc" {
			return 0, mib
		}
		if counted++; counted <= 6 {
			return 20, mib
		}
		return 6_000, mib
	}
	h.StartProcess(p)
	h.Run(4 * time.Second)
	if len(h.Proposals) != 1 {
		t.Errorf("proposals %v, want one", h.Proposals)
	}
}

func TestHugeBlocksAreLeftAlone(t *testing.T) {
	h := tunlettest.Start(t, malloc.New, nil)
	p := storm()
	p.Hits = allocations("malloc", 49, 64*mib)
	h.StartProcess(p)
	h.Run(30 * time.Second)
	if len(h.Proposals) > 0 {
		t.Errorf("proposed %v", h.Proposals[0])
	}
	if len(h.Remarks) != 1 || !strings.Contains(h.Remarks[0].GetText(), "32 MiB") {
		t.Errorf("remarks %v, want one about 32 MiB", h.Remarks)
	}
	if len(h.Points()) > 0 {
		t.Errorf("points %v are still asked for", h.Points())
	}
}

func TestOtherAllocationFunctions(t *testing.T) {
	for _, hook := range []string{"calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign"} {
		t.Run(hook, func(t *testing.T) {
			h := tunlettest.Start(t, malloc.New, nil)
			p := storm()
			p.Hits = allocations(hook, 3_150, mib)
			h.StartProcess(p)
			h.Run(600 * time.Millisecond)
			if len(h.Proposals) != 1 {
				t.Errorf("proposals: %v, want one", h.Proposals)
			}
		})
	}
}

func TestRefusedHooks(t *testing.T) {
	h := tunlettest.Start(t, malloc.New, nil)
	h.Refuse = func(*attunev1.MeasurePoint, *tunlettest.Process) string { return "static binary" }
	h.StartProcess(storm())
	h.Run(10 * time.Second)
	if len(h.Proposals) > 0 || len(h.Points()) > 0 {
		t.Errorf("proposals %v, points %v, want none", h.Proposals, h.Points())
	}
	if len(h.Remarks) != 1 || !strings.Contains(h.Remarks[0].GetText(), "static binary") {
		t.Errorf("remarks %v, want one with the reason", h.Remarks)
	}
}

func TestMemoryBoundsSettings(t *testing.T) {
	for _, tt := range []struct {
		name      string
		memory    string
		processes int
		want      map[string]uint64 // nil: no proposal
	}{
		{"plenty", "68719476736", 1, map[string]uint64{"mmap": 32 * mib, "trim": 1024 * mib, "pad": 64 * mib}},
		{"one gibibyte", "1174405120", 1, map[string]uint64{"mmap": 32 * mib, "trim": 510 * mib, "pad": 32 * mib}},
		{"too little", "150000000", 1, nil},
		{"less than resident", "50000000", 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, malloc.New, map[string]string{malloc.OptionMemory: tt.memory})
			p := storm()
			p.Gauges[sdk.ResidentBytes] = 100 * mib
			h.StartProcess(p)
			h.Run(600 * time.Millisecond)
			if tt.want == nil {
				if len(h.Proposals) > 0 || len(h.Remarks) != 1 {
					t.Errorf("proposals %v, remarks %v, want a remark only", h.Proposals, h.Remarks)
				}
				return
			}
			if len(h.Proposals) != 1 {
				t.Fatalf("proposals %v, want one", h.Proposals)
			}
			got := settings(t, h.Proposals[0])
			for name, want := range tt.want {
				for knob, v := range got {
					if strings.Contains(knob, "."+name) || strings.Contains(knob, "_"+name) {
						if v > want || v < want*9/10 || v%4096 != 0 {
							t.Errorf("%s = %d, want about %d, whole pages", knob, v, want)
						}
					}
				}
			}
		})
	}
}

// What is free on the node, and in its cgroups, is shared by those in trouble.
func TestFreeMemoryBoundsSettings(t *testing.T) {
	for _, tt := range []struct {
		name      string
		available uint64
		storms    int
		threads   float64
		trim      uint64 // 0: no proposal
	}{
		{"plenty", 64 << 30, 1, 1, 1024 * mib},
		{"one gibibyte", 1 << 30, 1, 1, 512 * mib},
		{"one gibibyte for two", 1 << 30, 2, 1, 256 * mib},
		{"one gibibyte for five threads", 1 << 30, 1, 5, 256 * mib},
		{"as many arenas as CPUs have", 4 << 30, 1, 1000, 1024 * mib},
		{"too little for the arenas", 900 * mib, 1, 64, 0},
		{"none, or it cannot be told", 0, 1, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, malloc.New, nil)
			for range tt.storms {
				p := storm()
				p.Gauges[sdk.Threads], p.Gauges[sdk.CPUsAllowed] = tt.threads, 2
				p.Details = func(time.Duration) *sdk.Details {
					return &sdk.Details{Memory: &sdk.MemoryDetails{AvailableBytes: tt.available}}
				}
				h.StartProcess(p)
			}
			h.Run(700 * time.Millisecond)
			if tt.trim == 0 {
				if len(h.Proposals) > 0 || len(h.Remarks) != 1 {
					t.Errorf("proposals %v, remarks %v, want a remark only", h.Proposals, h.Remarks)
				}
				return
			}
			if len(h.Proposals) != tt.storms {
				t.Fatalf("%d proposals, want %d", len(h.Proposals), tt.storms)
			}
			if got := settings(t, h.Proposals[0])["glibc.malloc.trim_threshold"]; got != tt.trim {
				t.Errorf("trim threshold %d, want %d", got, tt.trim)
			}
		})
	}
}

// One that was changed keeps its part of what is free.
func TestTunedProcessKeepsItsPart(t *testing.T) {
	h := tunlettest.Start(t, malloc.New, nil)
	for range 2 {
		p := storm()
		p.Details = func(time.Duration) *sdk.Details {
			return &sdk.Details{Memory: &sdk.MemoryDetails{AvailableBytes: 1 << 30}}
		}
		h.StartProcess(p)
		h.Run(700 * time.Millisecond)
		h.SetState(h.Proposals[len(h.Proposals)-1].GetId(), attunev1.ProposalState_PROPOSAL_STATE_KEPT, "")
	}
	if len(h.Proposals) != 2 {
		t.Fatalf("%d proposals, want two", len(h.Proposals))
	}
	for i, want := range []uint64{512 * mib, 256 * mib} {
		if got := settings(t, h.Proposals[i])["glibc.malloc.trim_threshold"]; got != want {
			t.Errorf("process %d: trim threshold %d, want %d", i+1, got, want)
		}
	}
}
