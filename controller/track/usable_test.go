// SPDX-License-Identifier: Apache-2.0

package track

import (
	"os"
	"testing"

	"github.com/attune-hpc/attune/internal/cpulist"
	"github.com/attune-hpc/attune/internal/procid"
)

// Nobody is told of CPUs that the controller itself may not use, nor of none.
func TestUsableCPUs(t *testing.T) {
	var u usableCPUs
	list := u.of(os.Getpid())
	usable, err := cpulist.Parse(list)
	if err != nil {
		t.Fatalf("usable CPUs %q: %v", list, err)
	}
	own, err := procid.Affinity(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if both := cpulist.Intersect(usable, own); len(both) != len(usable) || len(both) == 0 {
		t.Errorf("usable CPUs %v, want some of its own %v", usable, own)
	}
	if again := u.of(os.Getpid()); again != list || len(u.known) != 1 {
		t.Errorf("then %q, %d cgroups remembered, want 1", again, len(u.known))
	}
	if list := u.of(1 << 30); list != "" {
		t.Errorf("no process may use CPUs %q", list)
	}
}
