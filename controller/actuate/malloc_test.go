// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mustHidden finds variables with the helper that the programs embed.
func mustHidden(t *testing.T) *hidden.Prober {
	t.Helper()
	helper, err := os.ReadFile(targets.Build(t, "../../dmlib/probe/load.c", "-D_GNU_SOURCE"))
	if err != nil {
		t.Fatal(err)
	}
	return &hidden.Prober{Helper: helper}
}

// The words that the probe finds are the ones that malloc goes by: changed in
// place, without DMLib, they decide whether a block is mapped.
func TestMallocParametersInPlace(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/blocks.c"))
	a := New(Options{Journal: mustJournal(t, t.TempDir()), Kinds: All(AllOptions{Hidden: mustHidden(t)})})
	process := mustProcess(t, target.PID)
	if got := target.Ask(t, "1000000"); got != "mapped" {
		t.Fatalf("1 MB block is %s before the change", got)
	}
	got := a.Apply(context.Background(), process, &attunev1.Change{Id: "c", Action: setting("glibc.malloc.mmap_threshold", 32<<20)})
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || got.GetOldValue().GetInteger() != 128<<10 || got.GetNewValue().GetInteger() != 32<<20 {
		t.Fatalf("apply: %v", got)
	}
	if got := target.Ask(t, "1000000"); got != "heap" {
		t.Errorf("1 MB block is %s with a threshold of 32 MiB", got)
	}
	if got := a.Undo(context.Background(), "c"); got.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		t.Fatalf("undo: %v", got)
	}
	if got := target.Ask(t, "1000000"); got != "mapped" {
		t.Errorf("1 MB block is %s after undo", got)
	}
	if err := target.End(t); err != nil {
		t.Error(err)
	}
}

func TestAnotherAllocatorIsRefused(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.c")
	content := "#include <stddef.h>\nstatic char pool[1<<20]; static size_t at;\n" +
		"void *malloc(size_t n){ void *p = pool + at; at += (n + 15) & ~15ul; return p; }\nvoid free(void *p){ (void)p; }\n"
	if err := os.WriteFile(own, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	target := targets.Start(t, targets.Build(t, "testdata/variables.c", own, "-rdynamic"))
	a := New(Options{Journal: mustJournal(t, t.TempDir()), Kinds: All(AllOptions{Hidden: mustHidden(t)})})
	got := a.Apply(context.Background(), mustProcess(t, target.PID), &attunev1.Change{Id: "c", Action: setting("glibc.malloc.top_pad", 1)})
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED {
		t.Errorf("apply: %v", got)
	}
}
