// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestRememberedOfOverwrittenFile: what is remembered of a program is forgotten when its
// file is overwritten, which keeps its inode.
func TestRememberedOfOverwrittenFile(t *testing.T) {
	const text = `#include <stdio.h>
#include <stdlib.h>
int main(void) { void *volatile block = malloc(1); free(block); puts("ready"); fflush(stdout); return getchar() == 0; }
`
	program := targets.BuildText(t, "overwritten", text)
	next := files.Read(t, targets.BuildText(t, "next", text+"char more[1 << 16] = {1};\nint another(void) { return getpid(); }\n",
		"-include", "unistd.h", "-Wl,-z,norelro", "-rdynamic"))
	var tables SlotTables
	var exports Exports
	look := func() {
		t.Helper()
		target := targets.Start(t, program)
		defer target.Kill()
		images, err := objfile.Images(target.PID)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tables.Matching(images[0], "malloc")
		if err != nil {
			t.Fatal(err)
		}
		want, err := images[0].GOTSlots("malloc")
		if err != nil || len(want) == 0 {
			t.Fatalf("%v, %v", want, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("slots (-file +remembered):\n%s", diff)
		}
		if got, want := exports.Has(images[0], "another"), images[0].Exports("another"); got != want {
			t.Errorf("another function: %t, want %t", got, want)
		}
	}
	look()
	if err := targets.WriteProgram(program, next); err != nil {
		t.Fatal(err)
	}
	look()
}
