// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package inject

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procmem"
	"github.com/attune-hpc/attune/internal/targets"
)

// TestDeletedProgram: the file is gone, the program runs.
func TestDeletedProgram(t *testing.T) {
	b := newBench(t)
	program := targets.Program(t, "plain")
	h := targets.StartCommand(t, exec.Command(program))
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	b.enterAndLeave(t, h.PID)
	h.Right(t)
	h.Finish(t)
}

// buildPart makes libpart.so, a library that calls malloc.
func buildPart(t *testing.T) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "part.c")
	text := "#include <stdlib.h>\nvoid *part(void) { return malloc(10); }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return targets.BuildLibrary(t, source)
}

func imageOf(t *testing.T, pid int, name string) objfile.Image {
	t.Helper()
	images, err := objfile.Images(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		if image.Matches(name) {
			return image
		}
	}
	t.Fatalf("%s is not mapped", name)
	return objfile.Image{}
}

// TestObjectsLoadedLater: their calls go through the hooks too, and are given
// back.
func TestObjectsLoadedLater(t *testing.T) {
	b := newBench(t)
	h := targets.StartProgram(t, "churn") // comes to hooks
	result := b.inject(t, h.PID)
	defer free(t, result)
	if got := h.Ask(t, "load "+buildPart(t)); got != "right" {
		t.Fatal(got)
	}
	images, err := objfile.Images(h.PID)
	if err != nil {
		t.Fatal(err)
	}
	led, err := Extend(t.Context(), result.Memory, images, result.Slots)
	if err != nil || len(led) != 1 {
		t.Fatalf("led %v to hooks, %v; want the library's malloc", led, err)
	}
	part := imageOf(t, h.PID, "libpart.so")
	if s := led[0]; s.Address < part.Start || s.Address >= part.End || slotOf(t, h.PID, s) != s.Hook {
		t.Errorf("slot %+v holds %#x", s, slotOf(t, h.PID, s))
	}
	if again, err := Extend(t.Context(), result.Memory, images, append(led, result.Slots...)); err != nil || len(again) != 0 {
		t.Errorf("led %v to hooks again, %v", again, err)
	}
	if stayed := GiveBack(t.Context(), result.Memory, led); len(stayed) != 0 || slotOf(t, h.PID, led[0]) != led[0].Old {
		t.Errorf("given back, the slot holds %#x, want %#x (%v)", slotOf(t, h.PID, led[0]), led[0].Old, stayed)
	}
	h.Right(t)
	h.Finish(t)
}

func slotOf(t *testing.T, pid int, s Slot) uint64 {
	t.Helper()
	var word [8]byte
	if err := procmem.Read(pid, s.Address, word[:]); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(word[:])
}
