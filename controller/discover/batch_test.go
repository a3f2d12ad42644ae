// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
)

// What is met again and again stays known, however many others come and go.
func TestBatchRemembersWhatIsMet(t *testing.T) {
	child := mustStart(t, exec.Command("sleep", "1000"))
	b := batchLookup{known: make(map[key]time.Time)}
	stat, err := procid.ReadStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if b.started(child, 0) {
		t.Fatal("started by a batch system that there is not")
	}
	b.keep([]key{{os.Getpid(), stat.StartTicks}})
	for i := range 3 * maxKnown {
		b.keep([]key{{pid: -1 - i}})
		if i%1000 == 0 && !b.started(child, 0) {
			t.Fatalf("forgotten after %d others", i)
		}
		if len(b.known) > maxKnown {
			t.Fatalf("%d are remembered, want at most %d", len(b.known), maxKnown)
		}
	}
}
