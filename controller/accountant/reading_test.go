// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestMemoryOfChildren: an address space counts once, though a child of vfork has its parent's; what a
// child of fork has counts beside its parent's.
func TestMemoryOfChildren(t *testing.T) {
	const megabytes = 64
	program := targets.Build(t, "testdata/held_memory.c", "-O0", "-pthread") // memory that is only written would be optimised away
	for _, tt := range []struct {
		how                    string
		processes              int
		resident, proportional uint64 // times what is held
	}{
		{"fork", 2, 2, 1},
		{"vfork", 2, 1, 1},
	} {
		t.Run(tt.how, func(t *testing.T) {
			target := targets.StartCommand(t, exec.Command(program, "64", tt.how))
			source := &reaped{root: target.PID, beside: true, refuse: errors.New("no connector")}
			var n now
			patience.Until(t, "all processes to be seen", func() (seen bool) {
				var err error
				n, err = source.look()
				return err == nil && len(n.alive) == tt.processes
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
			check("virtual", r.virtual, tt.resident)
			pss, _, known := proportional(n.alive)
			if !known {
				t.Error("the proportional memory is not known")
			}
			check("proportional", pss, tt.proportional)
			if err := target.End(t); err != nil {
				t.Error(err)
			}
		})
	}
}
