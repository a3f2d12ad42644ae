// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestMemoryThatIsHeld: an address space counts once, though a child of vfork has its parent's; what a
// child of fork has counts beside its parent's; and so it is when first threads have ended.
func TestMemoryThatIsHeld(t *testing.T) {
	const megabytes = 64
	program := targets.Build(t, "testdata/held_memory.c", "-O0", "-pthread") // memory that is only written would be optimised away
	for _, tt := range []struct {
		how                    string
		processes, leaderless  int
		resident, proportional uint64 // times what is held
	}{
		{"fork", 2, 0, 2, 1},
		{"vfork", 2, 0, 1, 1},
		{"second", 1, 1, 1, 1},
		{"second-fork", 2, 1, 2, 1},
		{"second-vfork", 2, 1, 1, 1},
		{"both", 2, 2, 2, 1},
	} {
		t.Run(tt.how, func(t *testing.T) {
			if _, err := procid.SharesMemory(os.Getpid(), os.Getpid()); err != nil && strings.Contains(tt.how, "vfork") {
				t.Skipf("kcmp(2): %v", err)
			}
			target := targets.StartCommand(t, exec.Command(program, "64", tt.how))
			source := &reaped{root: target.PID, beside: true, refuse: errors.New("no connector")}
			var n now
			patience.Until(t, "all processes to be seen", func() (seen bool) {
				var err error
				n, err = source.look()
				count := 0
				for _, p := range n.alive {
					if leaderless(p.pid) {
						count++
					}
				}
				return err == nil && len(n.alive) == tt.processes && count == tt.leaderless
			})
			check := func(name string, got, times uint64) {
				t.Helper()
				if want := times * megabytes * 1e6; got < want || got > want+megabytes*1e6/2 {
					t.Errorf("%s: %d bytes, want %d and a little", name, got, want)
				}
			}
			r := read(n, false)
			check("resident", r.resident, tt.resident)
			check("anonymous", r.anonymous, tt.resident)
			if tt.leaderless > 0 { // room for what threads allocate is reserved
				r.virtual = min(r.virtual, tt.resident*megabytes*1e6)
			}
			check("virtual", r.virtual, tt.resident)
			pss, _, known := proportional(n.alive)
			if !known {
				t.Error("the proportional memory is not known")
			}
			check("proportional", pss, tt.proportional)
			o := newOpened()
			o.answer(n.alive)
			if !slices.ContainsFunc(o.end(), func(f account.File) bool { return f.Path == program }) {
				t.Error("the executable is not among the files that are open")
			}
			if err := target.End(t); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDoubledMemory: where the kernel does not tell who has whose memory, that is said of sums over several
// processes; how they were measured, and what is known of a single process, stays.
func TestDoubledMemory(t *testing.T) {
	const resident, cgroup = "memory.resident_peak_bytes", "memory.cgroup_peak_bytes"
	for _, tt := range []struct {
		name     string
		refused  error
		peak     *uint64
		accuracy account.Accuracy
		said     bool
	}{
		{"it tells", nil, new(uint64(2)), account.Sampled, false},
		{"of several", unix.EPERM, new(uint64(2)), account.Sampled, true},
		{"of nobody knows how many", unix.EPERM, nil, account.Sampled, true},
		{"of one", unix.EPERM, new(uint64(1)), account.Sampled, false},
		{"of one, by its mark", unix.EPERM, new(uint64(1)), account.Exact, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			accuracy := map[string]account.Accuracy{resident: tt.accuracy, cgroup: account.Exact}
			a := &account.Account{Accuracy: maps.Clone(accuracy), Missing: make(map[string]string)}
			a.Processes.Peak = tt.peak
			fillDoubled(a, tt.refused)
			if diff := cmp.Diff(accuracy, a.Accuracy); diff != "" {
				t.Error(diff)
			}
			if _, said := a.Missing[resident]; said != tt.said || len(a.Missing) > 1 {
				t.Errorf("missing: %v", a.Missing)
			}
		})
	}
}
