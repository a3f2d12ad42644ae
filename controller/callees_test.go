// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/binary"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestCallsOfAnotherAreLeft: a slot that leads to another object's function of that name,
// or will once the loader has bound it, stays as it is: who asks for the C library's does
// not want the program's calls to go there. An allocator's memory would be given to the
// other one.
func TestCallsOfAnotherAreLeft(t *testing.T) {
	for _, row := range []struct {
		name, symbol, binding, want string
		attach                      bool
	}{
		{"bound", "getppid", "now", "calls that of libown.so", false},
		{"not bound yet", "getppid", "lazy", "may call that of libown.so", false},
		{"behind a hook", "free", "now", "may call that of libown.so", false},
		{"behind a hook that came later", "free", "now", "may call that of libown.so", true},
		{"behind a hook and not bound yet", "free", "lazy", "may call that of libown.so", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			own := targets.BuildLibrary(t, "testdata/own.c")
			program := targets.Build(t, "testdata/calls.c", "-Wl,-z,"+row.binding, own, "-Wl,-rpath,"+filepath.Dir(own))
			b := start(t)
			target := b.startOrAttach(t, program, row.attach)
			before := slotsOf(t, target.PID, "calls", row.symbol)
			point := call(row.symbol, true)
			point.GetFunction().Object = "libc.so.6"
			b.addPoint(t, 3, point)
			status := b.placedWhile(t, 3, func() { target.Ask(t, "0") })
			if after := slotsOf(t, target.PID, "calls", row.symbol); row.binding == "now" && !slices.Equal(before, after) || len(before) != 1 {
				t.Errorf("slots held %#x and hold %#x: %v", before, after, status)
			}
			if status.GetMechanism() == "got" || !strings.Contains(status.GetReason(), row.want) {
				t.Errorf("point: %v", status)
			}
			target.Ask(t, "10")
			b.stop(t)
			target.EndWell(t)
		})
	}
}

// startOrAttach has DMLib in a program from its start, or brings it in later.
func (b *bench) startOrAttach(t *testing.T, program string, attach bool) *targets.Target {
	t.Helper()
	if !attach {
		target := targets.Start(t, program, b.controller.Environment()...)
		b.withDMLib(t, target.PID)
		return target
	}
	target := targets.StartCommand(t, exec.Command(program))
	attached, err := b.controller.Attach(t.Context(), target.PID)
	if err != nil || attached.NotInjected != nil {
		t.Fatal(err, attached.NotInjected)
	}
	b.withDMLib(t, target.PID)
	return target
}

// TestStubsKeepHooks: calls that a point counts through the GOT come by DMLib's hook as
// before, where another point counts them.
func TestStubsKeepHooks(t *testing.T) {
	for _, binding := range []string{"now", "lazy"} {
		t.Run(binding, func(t *testing.T) {
			b := start(t)
			b.sampleEvery(t, 20*time.Millisecond)
			b.addPoint(t, 3, &attunev1.MeasurePoint{Id: "hook", Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}, MinValue: 100, MaxValue: 100})
			stub := call("malloc", true)
			stub.GetFunction().Object = "libc.so.6"
			b.addPoint(t, 4, stub)
			target := targets.Start(t, targets.Build(t, "testdata/calls.c", "-Wl,-z,"+binding), b.controller.Environment()...)
			for range 2 {
				s := b.anyPlacedWhile(t, func() { target.Ask(t, "0") })
				if want := map[uint32]string{3: "hook", 4: "got"}[s.GetPoint()]; s.GetMechanism() != want {
					t.Fatalf("point: %v, want mechanism %s", s, want)
				}
			}
			const lines = 50 // a block of 100 bytes for each
			for range lines {
				target.Ask(t, "0")
			}
			counted := b.removed(t, 3, 4)
			for index, n := range counted {
				if n < lines {
					t.Errorf("point %d counted %d calls of %d", index, n, lines)
				}
			}
			b.stop(t)
			target.EndWell(t)
		})
	}
}

// slotsOf reads what the slots of a function in an object of a process hold.
func slotsOf(t *testing.T, pid int, object, symbol string) (held []uint64) {
	t.Helper()
	images, err := objfile.Images(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		if !image.Matches(object) {
			continue
		}
		slots, err := image.GOTSlots(symbol)
		if err != nil {
			t.Fatal(err)
		}
		for _, slot := range slots {
			word := make([]byte, 8)
			if err := targets.ReadMemory(pid, image.Address(slot.VirtualAddress), word); err != nil {
				t.Fatal(err)
			}
			held = append(held, binary.LittleEndian.Uint64(word))
		}
	}
	return held
}
