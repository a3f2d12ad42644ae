// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestStarvedHelper: one that waits for a processor does not hang, and its user is not
// refused for it; it is waited for when it is killed, too.
func TestStarvedHelper(t *testing.T) {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !may.IsSet(cpu) {
		cpu++
	}
	program := buildPlain(t)
	on := []string{"taskset", "-c", fmt.Sprint(cpu)}
	busy := exec.Command(on[0], append(on[1:], "sh", "-c", "while :; do :; done")...)
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = busy.Process.Kill()
		_ = busy.Wait() // killed
	}()
	if err := exec.Command(program, Argument).Run(); err != nil { // its pages are in memory from now on
		t.Fatal(err)
	}
	const short = time.Second // a third of what the answer takes
	p, _ := mustPool(t, Options{Command: append(on, "nice", "-n", "19", program, Argument), Patience: short, mostStarved: patience.Limit})
	if _, err := burn().Ask(t.Context(), p, harmless, 30*time.Millisecond); err != nil || len(p.Refused()) != 0 {
		t.Fatalf("error %v, refused %v", err, p.Refused())
	}
	endStarved(t, p.idle[0])
	p.idle = nil
}

// buildPlain builds this test program without the race detector: a helper that has the detector
// gives back all of its shadow memory when it is killed, which took a starved one minutes.
func buildPlain(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "plain.test")
	build := exec.Command("go", "test", "-c", "-race=false", "-vet=off", "-o", program)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v: %s", program, err, out)
	}
	return program
}

// endStarved ends a helper that gets next to no processor. It is not left behind.
func endStarved(t *testing.T, h *helper) {
	threads, err := procid.Threads(h.held.PID())
	if err != nil {
		t.Fatal(err)
	}
	for _, tid := range threads {
		if err := unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0); err != nil {
			t.Fatal(err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	gone := false
	if h.end(over, 50*time.Millisecond, func() { gone = true }); !gone {
		t.Error("the helper that was killed is left behind")
	}
}
