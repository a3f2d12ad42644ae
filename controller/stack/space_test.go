// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"errors"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/internal/objfile"
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
	if err := target.End(t); err != nil {
		t.Fatal(err)
	}
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

func TestPrintable(t *testing.T) {
	if got := printable("p:\x1b[2J\nf\u202e"); strings.ContainsAny(got, "\x1b\n\u202e") {
		t.Errorf("%q", got)
	}
}
