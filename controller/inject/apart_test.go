// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package inject

import (
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestNamespaceOfTheLoader: an object that a program loaded with a C library of its own
// gets its memory from there, and gives it back there.
func TestNamespaceOfTheLoader(t *testing.T) {
	b := newBench(t)
	h := targets.StartProgram(t, "apart", buildLibrary(t, "part",
		`char *strdup(const char *); int part(void) { char *p = strdup("here"); int ok = p != NULL; free(p); return ok; }`))
	result := b.inject(t, h.PID)
	defer free(t, result)
	h.Right(t)
	images, err := objfile.Images(h.PID)
	if err != nil {
		t.Fatal(err)
	}
	led, err := Extend(t.Context(), mustOpen(t, h.PID), result.Memory, images, result.Slots)
	if err != nil || len(led) != 0 {
		t.Errorf("led %v to hooks later, %v; want none", led, err)
	}
	part := imageOf(t, h.PID, "libpart.so")
	for _, s := range result.Slots {
		if s.Address >= part.Start && s.Address < part.End {
			t.Errorf("slot %+v is of the library", s)
		}
	}
	if len(result.Slots) == 0 {
		t.Error("no slots lead to hooks")
	}
	h.Right(t)
	h.Finish(t)
}
