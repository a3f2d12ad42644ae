// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// A slot is written only as long as what makes it one is there.
func TestSlotThatIsNoneAnyMore(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "../testdata/variables.c", "-Wl,-z,now"))
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
			if err := settled(mustProcess(t, target.PID), w); err != nil {
				t.Errorf("%s of %s: %v", slot.Symbol, image.Name(), err)
			}
			w.ImageBias += 8
			if err := settled(mustProcess(t, target.PID), w); !errors.Is(err, unix.ESTALE) {
				t.Errorf("%s of %s, from elsewhere: %v, want ESTALE", slot.Symbol, image.Name(), err)
			}
		}
	}
	if looked == 0 {
		t.Error("no slots looked at")
	}
	unreadable := func(uint64, []byte) error { return proc.ErrPermission }
	if (objfile.Origin{Relocation: 8}).Holds(unreadable, 0) {
		t.Error("what cannot be read is there")
	}
}

// The object of a word is there although nobody may open its file any more.
func TestObjectWithoutFile(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "../testdata/variables.c"))
	images, err := mustProcess(t, target.PID).Images()
	if err != nil {
		t.Fatal(err)
	}
	image := images[0]
	for _, tt := range []struct {
		name       string
		images     []objfile.Image
		RegisterOf Word
		want       bool
	}{
		{"as it was", images, Word{ImageInode: image.Inode, ImageBias: image.Bias}, true},
		{"loaded anew", images, Word{ImageInode: image.Inode, ImageBias: image.Bias + 4096}, false},
		{"its file was replaced", nil, Word{ImageInode: image.Inode, ImageBias: image.Bias}, true},
		{"unloaded", nil, Word{ImageInode: image.Inode + 1<<40, ImageBias: image.Bias}, false},
	} {
		if got, err := objectThere(mustProcess(t, target.PID), tt.images, tt.RegisterOf); got != tt.want || err != nil {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

// A word of a thread that has ended is left alone, whoever has its number now.
func TestWordOfAnEndedThread(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "../testdata/tuned.c", "../testdata/tuned_other.c"))
	content := []byte{1, 0, 0, 0}
	now, err := ThreadNow(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	found, err := Lookup(mustProcess(t, target.PID), "tuned", "ratio", objfile.Variable)
	if err != nil {
		t.Fatal(err)
	}
	w := Word{Address: found.Address, New: content, Old: []byte{9, 9, 9, 9}, Thread: &Thread{TID: now.TID, StartTicks: now.StartTicks + 1}}
	if err := put(mustProcess(t, target.PID), w, content); err != nil {
		t.Fatal(err)
	}
	if err := putBack(mustProcess(t, target.PID), w); err != nil {
		t.Error(err)
	}
	there := make([]byte, 4)
	if err := targets.ReadMemory(target.PID, w.Address, there); err != nil || string(there) != string(content) {
		t.Errorf("% x, %v, want % x", there, err, content)
	}
}

func mustProcess(t *testing.T, pid int) Process {
	t.Helper()
	identity, err := procid.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	return ProcessOf(identity)
}
