// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"errors"
	"os"
	"testing"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/hostile"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestSpaceOutlivesItsProcess: names and rows are there when the process is not, and what
// is in no file has a name as well.
func TestSpaceOutlivesItsProcess(t *testing.T) {
	binary := targets.BuildText(t, "stacked", program, "-O2", "-fomit-frame-pointer")
	target := targets.Start(t, binary)
	gone := false
	images, err := objfile.Images(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	space, err := NewSpace(func() ([]objfile.Image, error) {
		if gone {
			return nil, errors.New("it has ended")
		}
		return images, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	target.EndWell(t)
	gone = true
	symbol, err := images[0].Symbol("right", objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	address := images[0].Address(symbol.Value)
	for at, want := range map[uint64]string{address: "stacked:right", address + 1: "stacked:right", 1: outside} {
		if got := space.Name(at, false); got != want {
			t.Errorf("%#x is %s, want %s", at, got, want)
		}
	}
	if name := space.Name(address, true); name == "stacked:right" {
		t.Errorf("a call that returns to where a function begins was made in it: %s", name)
	}
	if space.Renew([]uint64{1}) {
		t.Error("a process that has ended has mapped something")
	}
	for _, o := range space.Objects() {
		checkRows(t, o)
	}
	if err := space.Close(); err != nil {
		t.Error(err)
	}
}

// checkRows: rows ascend, and no two say the same.
func checkRows(t *testing.T, o uprobe.Object) {
	rows, err := o.Rows()
	if err != nil || len(rows) == 0 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	for i := 1; i < len(rows); i++ {
		if rows[i-1].PC >= rows[i].PC {
			t.Fatalf("row %d is at %#x, behind one at %#x", i, rows[i].PC, rows[i-1].PC)
		}
	}
}

// TestHostileFiles: the user of a process decides how many files it has mapped, and how much
// is said of frames there; what is read of them ends.
func TestHostileFiles(t *testing.T) {
	file, err := objfile.Open(hostile.Write(t, hostile.ELF(hostile.Frames(1<<20, 500_000))))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var a allowance
	a.open()
	a.bytes.Store(allFrameInfo / 8) // reading all takes most of a minute under the race detector
	read := 0
	for ; err == nil && read < 1000; read++ {
		_, err = a.rowsOf(file, 0)
	}
	if !errors.Is(err, errMuch) || a.rows.Load() < -maxRows || a.bytes.Load() < -maxFrameInfo {
		t.Errorf("%v after %d files, with %d rows and %d bytes left", err, read, a.rows.Load(), a.bytes.Load())
	}
}

// TestEndlessMappings: objects that come and go at new addresses do not keep files open without end.
func TestEndlessMappings(t *testing.T) {
	images, err := objfile.Images(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	look := uint64(0)
	space, err := NewSpace(func() (list []objfile.Image, _ error) {
		const batch, apart = 1000, 1 << 32
		for range batch {
			look++
			image := images[0]
			image.Bias, image.Start, image.End = look*apart, look*apart, look*apart+1
			list = append(list, image)
		}
		return list, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	for range 10 {
		space.Renew([]uint64{1})
	}
	if n := len(space.Objects()); n > mostObjects {
		t.Errorf("%d objects are open, want at most %d", n, mostObjects)
	}
}
