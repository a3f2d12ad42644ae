// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procmem"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// A slot is written only as long as what makes it one is there.
func TestSlotThatIsNoneAnyMore(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/variables.c", "-Wl,-z,now"))
	process := mustProcess(t, target.PID)
	images, err := process.Images()
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, image := range images {
		slots, err := image.GOTSlots("*")
		if err != nil {
			t.Fatal(err)
		}
		for _, slot := range slots {
			if slot.Origin.Relocation == 0 || !slot.RELRO {
				continue
			}
			looked++
			w := Word{What: "slot", Address: image.Address(slot.VirtualAddress), ImageBias: image.Bias, Slot: true, ReadOnly: true, Origin: slot.Origin}
			if err := settled(target.PID, w); err != nil {
				t.Errorf("%s of %s: %v", slot.Symbol, image.Name(), err)
			}
			w.ImageBias += 8
			if err := settled(target.PID, w); !errors.Is(err, unix.ESTALE) {
				t.Errorf("%s of %s, from elsewhere: %v, want ESTALE", slot.Symbol, image.Name(), err)
			}
		}
	}
	if looked == 0 {
		t.Error("no slots looked at")
	}
	unreadable := func(uint64, []byte) error { return procmem.ErrPermission }
	if (objfile.Origin{Relocation: 8}).Holds(unreadable, 0) {
		t.Error("what cannot be read is there")
	}
}

// The object of a word is there although nobody may open its file any more.
func TestObjectWithoutFile(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
	images, err := mustProcess(t, target.PID).Images()
	if err != nil {
		t.Fatal(err)
	}
	image := images[0]
	for _, tt := range []struct {
		name   string
		images []objfile.Image
		word   Word
		want   bool
	}{
		{"as it was", images, Word{ImageInode: image.Inode, ImageBias: image.Bias}, true},
		{"loaded anew", images, Word{ImageInode: image.Inode, ImageBias: image.Bias + 4096}, false},
		{"its file was replaced", nil, Word{ImageInode: image.Inode, ImageBias: image.Bias}, true},
		{"unloaded", nil, Word{ImageInode: image.Inode + 1<<40, ImageBias: image.Bias}, false},
	} {
		if got, err := objectThere(target.PID, tt.images, tt.word); got != tt.want || err != nil {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}
