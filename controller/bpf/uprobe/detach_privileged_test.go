// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/files"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Points come and go on a function without a record of another point on it
// being lost or doubled.
func TestOtherPointsLoseNothing(t *testing.T) {
	for mechanism, opts := range mechanisms() {
		t.Run(mechanism, func(t *testing.T) {
			opts.RingBytes = 16 << 20
			u := mustUprobes(t, opts)
			binary := mustCompile(t, "target.c")
			target := mustAttachEvents(t, u, binary, "starts_with_push", Spec{Point: 1})
			symbols := mustSymbols(t, binary, "starts_with_push")
			const calls, rounds = 30_000, 20
			records := collect(t, u, func(func(int)) {
				if err := target.Say(fmt.Sprint("threads:push ", calls)); err != nil {
					t.Fatal(err)
				}
				for range rounds {
					a := mustAttach(t, u, Spec{Path: binary, Symbols: symbols, Point: 2})
					mustWatch(t, u, target.PID, 2)
					a.Close()
					if err := u.UnwatchProcess(target.PID, 2); err != nil {
						t.Error(err)
					}
				}
				target.Expect(t, "done")
			})
			if len(records) != 4*calls || u.Lost() != 0 {
				t.Errorf("%d records, %d lost, want %d and 0", len(records), u.Lost(), 4*calls)
			}
		})
	}
}

// A point that is taken out counts nothing from that moment on, and one that
// comes back at once counts each call once, whatever probes the kernel still
// has to take out.
func TestDetachedPointIsSilent(t *testing.T) {
	for mechanism, opts := range mechanisms() {
		t.Run(mechanism, func(t *testing.T) {
			u := mustUprobes(t, opts)
			binary := mustCompile(t, "target.c")
			target := mustStartTarget(t, binary)
			spec := Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 1}
			for round := range 5 {
				a := mustAttach(t, u, spec)
				mustWatch(t, u, target.PID, 1)
				target.mustCall(t, "push 100")
				a.Close()
				target.mustCall(t, "push 50")
				if got := mustAggregate(t, u, target.PID, 1); got.Count != 100 {
					t.Errorf("round %d: %d hits, want 100", round, got.Count)
				}
				if err := u.UnwatchProcess(target.PID, 1); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestCloseIsBounded(t *testing.T) {
	u, err := New(Options{CloseTimeout: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	binary := mustCompile(t, "target.c")
	mustAttach(t, u, Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 1})
	u.detacher.begin(1) // more than the probe's, which may be out by then
	if err := u.Close(); !errors.Is(err, ErrDetaching) {
		t.Errorf("closed with %v", err)
	}
	u.detacher.end()
	<-u.detacher.settled()
	if u.Lost() != 0 || u.NextInterval() != nil {
		t.Error("a closed one is not quiet")
	}
}

// A controller that is killed leaves no breakpoint behind: with its last
// descriptors the kernel takes all probes out, and before its end is known.
func TestKilledControllerLeavesNothing(t *testing.T) {
	binary := mustCompile(t, "target.c")
	target := mustStartTarget(t, binary)
	offset := mustSymbols(t, binary, "starts_with_push")[0].Offset
	address := mustMapped(t, target.PID, binary, offset)
	before := mustPeek(t, target.PID, address)

	controller := exec.Command("/proc/self/exe", "-test.run=^TestControllerToKill$")
	controller.Env = append(os.Environ(), "ATTUNE_TEST_PROBE="+binary)
	out, err := controller.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := controller.StdinPipe() // stays open: it waits for its end
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := controller.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	during := mustPeek(t, target.PID, address)
	if err := controller.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = controller.Wait() // killed
	if line != "attached\n" || bytes.Equal(during, before) {
		t.Fatalf("it said %q (%v), the code was % x, then % x", line, err, before, during)
	}
	if after := mustPeek(t, target.PID, address); !bytes.Equal(after, before) {
		t.Errorf("the code is % x, was % x", after, before)
	}
	target.mustCall(t, "push 10")
}

// TestControllerToKill is run by TestKilledControllerLeavesNothing.
func TestControllerToKill(t *testing.T) {
	binary := os.Getenv("ATTUNE_TEST_PROBE")
	if binary == "" {
		return
	}
	u := mustUprobes(t, Options{})
	symbols := mustSymbols(t, binary, "starts_with_push")
	for point := uint16(1); point <= 10; point++ {
		mustAttach(t, u, Spec{Path: binary, Symbols: symbols, Point: point, Delivery: attunev1.Delivery_DELIVERY_EVENT})
	}
	fmt.Println("attached")
	_, _ = io.ReadAll(os.Stdin) // until it is killed
}

// mustMapped returns the address where a process has a place of a file.
func mustMapped(t *testing.T, pid int, path string, offset uint64) uint64 {
	t.Helper()
	maps := files.Read(t, fmt.Sprintf("/proc/%d/maps", pid))
	for line := range bytes.Lines(maps) {
		var from, to, at uint64
		var mode, device, name string
		var inode int
		_, err := fmt.Sscanf(string(line), "%x-%x %s %x %s %d %s", &from, &to, &mode, &at, &device, &inode, &name)
		if err == nil && name == path && mode == "r-xp" && offset >= at && offset < at+to-from {
			return from + offset - at
		}
	}
	t.Fatalf("process %d has not mapped %s", pid, path)
	return 0
}

// mustPeek reads the first bytes of a function of a process.
func mustPeek(t *testing.T, pid int, address uint64) []byte {
	t.Helper()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	code := make([]byte, 8)
	if _, err := memory.ReadAt(code, int64(address)); err != nil {
		t.Fatal(err)
	}
	return code
}
