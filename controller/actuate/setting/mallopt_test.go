// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mustHidden finds variables with the helper that the programs embed.
func mustHidden(t *testing.T) *hidden.Prober {
	t.Helper()
	helper := files.Read(t, targets.Build(t, "../../../dmlib/probe/load.c", "-D_GNU_SOURCE"))
	return &hidden.Prober{Helper: helper}
}

// The words that the probe finds are the ones that malloc goes by: changed in
// place, without DMLib, they decide whether a block is mapped.
func TestMallocParametersInPlace(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "../testdata/blocks.c"))
	a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(t, t.TempDir()), Kinds: Kinds(mustHidden(t))})
	process := actuatetest.MustProcess(t, target.PID)
	if got := target.Ask(t, "1000000"); got != "mapped" {
		t.Fatalf("1 MB block is %s before the change", got)
	}
	got := a.Apply(context.Background(), process, &attunev1.Change{Id: "c", Action: actuatetest.Setting("glibc.malloc.mmap_threshold", 32<<20)})
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
	target.EndWell(t)
}

func TestAnotherAllocatorIsRefused(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.c")
	content := "#include <stddef.h>\nstatic char pool[1<<20]; static size_t at;\n" +
		"void *malloc(size_t n){ void *p = pool + at; at += (n + 15) & ~15ul; return p; }\nvoid free(void *p){ (void)p; }\n"
	files.Write(t, own, content, 0o600)
	target := targets.Start(t, targets.Build(t, "../testdata/variables.c", own, "-rdynamic"))
	a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(t, t.TempDir()), Kinds: Kinds(mustHidden(t))})
	got := a.Apply(context.Background(), actuatetest.MustProcess(t, target.PID), &attunev1.Change{Id: "c", Action: actuatetest.Setting("glibc.malloc.top_pad", 1)})
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED {
		t.Errorf("apply: %v", got)
	}
}

// All malloc settings share the flag that ends glibc's own adjustment. In
// whatever order they are undone, it is back after the last, and not before.
func TestSharedWordIsRestoredLast(t *testing.T) {
	tests := []struct {
		name string
		undo []string // "" is the death of the controller, and Restore
	}{
		{"latest first", []string{"b", "a"}},
		{"latest last", []string{"a", "b"}},
		{"controller dies in between", []string{"a", ""}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			target := targets.Start(t, targets.Build(t, "../testdata/blocks.c"))
			dir := t.TempDir()
			journal := actuatetest.MustJournal(t, dir)
			a := actuate.New(actuate.Options{Journal: journal, Kinds: Kinds(mustHidden(t))})
			p := actuatetest.MustProcess(t, target.PID)
			actuatetest.MustApply(t, a, p, &attunev1.Change{Id: "a", Action: actuatetest.Setting("glibc.malloc.mmap_threshold", 1<<20)})
			actuatetest.MustApply(t, a, p, &attunev1.Change{Id: "b", Action: actuatetest.Setting("glibc.malloc.trim_threshold", 1<<20)})
			libc, err := access.Resolve(p, "libc.so*", "mallopt", objfile.Function)
			if err != nil {
				t.Fatal(err)
			}
			at, err := mustHidden(t).Find(t.Context(), target.PID, libc.Image, hidden.MallocNoDynThreshold())
			if err != nil {
				t.Fatal(err)
			}
			flag := libc.Image.Address(at)
			for i, id := range test.undo {
				if id == "" {
					if err := journal.Close(); err != nil {
						t.Fatal(err)
					}
					if restored, err := Kinds(nil).Restore(dir); err != nil || len(restored) != 1 || restored[0].Err != nil {
						t.Errorf("restored %v, %v", restored, err)
					}
				} else if got := a.Undo(context.Background(), id); got.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
					t.Errorf("undo %s: %v", id, got)
				}
				now, want := make([]byte, 4), []byte{0, 0, 0, 0}
				if i == 0 {
					want[0] = 1
				}
				if err := targets.ReadMemory(target.PID, flag, now); err != nil || !bytes.Equal(now, want) {
					t.Errorf("after undoing %q the flag is %v, want %v, %v", id, now, want, err)
				}
			}
		})
	}
}
