// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package accountant

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestFirstThreadCountsOnce: what the first thread took counts once when it has ended before the
// others, at a look and at the end.
func TestFirstThreadCountsOnce(t *testing.T) {
	const megabytes = 20
	program := targets.Build(t, "testdata/held_memory.c", "-O0", "-pthread")
	input := filepath.Join(t.TempDir(), "input")
	if err := unix.Mkfifo(input, 0o600); err != nil {
		t.Fatal(err)
	}
	open, err := os.OpenFile(input, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, child := mustBegin(t, Options{}, "sh", "-c", `exec "$0" "$1" second <"$2" >/dev/null`, program, fmt.Sprint(megabytes), input)
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	check := func(when string, got uint64) {
		t.Helper()
		if got < megabytes*1e6 || got > megabytes*3/2*1e6 {
			t.Errorf("%s: %d bytes read, want %d MB and a little", when, got, megabytes)
		}
	}
	var n now
	patience.Until(t, "the kernel to be done with the first thread", func() bool {
		var err error
		if n, err = a.source.look(); err != nil {
			t.Fatal(err)
		}
		return len(n.alive) == 1 && n.alive[0].firstDone && n.alive[0].done.read >= megabytes*1e6 && !n.moved
	})
	r := read(n, true)
	check("at a look", r.taken.read)
	for _, p := range n.alive {
		_, rest := left(p, a.started)
		rest.add(p.done)
		check("left behind", rest.read)
	}
	if err := open.Close(); err != nil {
		t.Error(err)
	}
	record := a.End(patience.Context(t), nil, child.Wait())
	check("at the end", *record.IO.Read)
}
