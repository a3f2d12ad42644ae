// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
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
	return buildLibrary(t, "part", "void *part(void) { return malloc(10); }")
}

// buildLibrary makes libNAME.so of a function that uses stdlib.h.
func buildLibrary(t *testing.T, name, function string) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), name+".c")
	files.Write(t, source, "#include <stdlib.h>\n"+function+"\n", 0o600)
	return targets.BuildLibrary(t, source)
}

// TestObjectsThatSwap: what was found in a library is not written into another
// one that lies there by now.
func TestObjectsThatSwap(t *testing.T) {
	b := newBench(t)
	h := targets.StartProgram(t, "swaps",
		buildLibrary(t, "one", `int one(void) { void *p = malloc(10); int ok = p != NULL; free(p); return ok; }`),
		buildLibrary(t, "two", `int two(void) { return atoi("1") + (int)labs(-1L); }`))
	for range targets.Fewer(25) {
		result := b.inject(t, h.PID)
		images, err := objfile.Images(h.PID)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		led, err := Extend(ctx, mustOpen(t, h.PID), result.Memory, images, result.Slots)
		if err != nil {
			t.Fatal(err)
		}
		GiveBack(ctx, result.Memory, append(led, result.Slots...))
		cancel()
		free(t, result)
	}
	h.Right(t)
	h.Finish(t)
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
	led, err := Extend(t.Context(), mustOpen(t, h.PID), result.Memory, images, result.Slots)
	if err != nil || len(led) != 1 {
		t.Fatalf("led %v to hooks, %v; want the library's malloc", led, err)
	}
	part := imageOf(t, h.PID, "libpart.so")
	if s := led[0]; s.Address < part.Start || s.Address >= part.End || slotOf(t, h.PID, s) != s.To {
		t.Errorf("slot %+v holds %#x", s, slotOf(t, h.PID, s))
	}
	if again, err := Extend(t.Context(), mustOpen(t, h.PID), result.Memory, images, append(led, result.Slots...)); err != nil || len(again) != 0 {
		t.Errorf("led %v to hooks again, %v", again, err)
	}
	if stayed := GiveBack(t.Context(), result.Memory, led); len(stayed) != 0 || slotOf(t, h.PID, led[0]) != led[0].Old {
		t.Errorf("given back, the slot holds %#x, want %#x (%v)", slotOf(t, h.PID, led[0]), led[0].Old, stayed)
	}
	h.Right(t)
	h.Finish(t)
}

func slotOf(t *testing.T, pid int, s shm.Slot) uint64 {
	t.Helper()
	var word [8]byte
	if err := mustOpen(t, pid).Read(s.Address, word[:]); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(word[:])
}
