// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What is to be undone and cannot be just then is not kept: it stays the controller's to
// undo.
func TestKeepOnly(t *testing.T) {
	b := mustChange(t, "kept", "busy", "undone")
	b.names = []string{"busy"}
	kept, err := b.kinds.OpenKept(patience.Context(t), t.TempDir(), "node")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	ids, err := b.KeepOnly(t.Context(), kept, []string{"kept"})
	if err != nil || len(ids) != 1 {
		t.Errorf("kept %v, %v, want one", ids, err)
	}
	if all, err := kept.IDs(); err != nil || !slices.Equal(all, ids) {
		t.Errorf("the journal of kept changes has %v, %v, want %v", all, err, ids)
	}
	if left := b.InForce(); !slices.Equal(left, []string{"busy"}) {
		t.Errorf("left to the controller: %v", left)
	}
	b.names = nil
	if ids := b.mustRestore(t); !slices.Equal(ids, []string{"busy"}) {
		t.Errorf("restored %v", ids)
	}
}

// A change that has failed, and that cannot be taken back just then, is nobody's to keep: it
// stays the controller's to undo.
func TestKeepNoFailedChange(t *testing.T) {
	keeps := map[string]func(*busy, *actuate.Kept) ([]string, error){
		"all": func(b *busy, kept *actuate.Kept) ([]string, error) { return b.Keep(kept) },
		"those named": func(b *busy, kept *actuate.Kept) ([]string, error) {
			return b.KeepOnly(t.Context(), kept, []string{"good", "failed"})
		},
	}
	for name, keep := range keeps {
		t.Run(name, func(t *testing.T) {
			b := mustChange(t, "good")
			b.names, b.run = []string{"failed"}, errors.New("it reads back as 0")
			failing := &attunev1.Change{Id: "failed", Knob: "failed", Action: actuatetest.Setting("failed", 1)}
			b.actuator.ApplySet(t.Context(), []actuate.Item{{Process: actuatetest.MustProcess(t, os.Getpid()), Change: failing}}, b.hooks(0))
			kept, err := b.kinds.OpenKept(patience.Context(t), t.TempDir(), "node")
			if err != nil {
				t.Fatal(err)
			}
			defer kept.Close()
			ids, err := keep(b, kept)
			if left := b.InForce(); err != nil || len(ids) != 1 || !slices.Equal(left, []string{"failed"}) {
				t.Errorf("kept %v, %v, and left %v to the controller, want one each", ids, err, left)
			}
			b.names = nil
			if ids := b.mustRestore(t); !slices.Equal(ids, []string{"failed"}) {
				t.Errorf("restored %v", ids)
			}
		})
	}
}
