// SPDX-License-Identifier: Apache-2.0

package threadlocal_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/targets"
	"github.com/attune-hpc/attune/internal/threadlocal"
)

// started is the program, with where its variables lie.
type started struct {
	first, second             int // threads
	own, secondOwn, firstLate uint64
	images                    []objfile.Image
}

func start(t *testing.T, flags ...string) started {
	t.Helper()
	program := targets.Build(t, "testdata/threads.c", append([]string{"-ldl"}, flags...)...)
	library := targets.BuildWith(t, "gcc", "library.so", "testdata/library.c", "-shared", "-fPIC")
	cmd := exec.Command(program)
	cmd.Dir = filepath.Dir(library)
	target := targets.StartCommand(t, cmd)
	var s started
	if _, err := fmt.Sscanf(target.Ask(t, ""), "%d %x %d %x %x", &s.first, &s.own, &s.second, &s.secondOwn, &s.firstLate); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.images, err = objfile.Images(target.PID); err != nil {
		t.Fatal(err)
	}
	return s
}

func held(t *testing.T, pid int) *proc.Handle {
	t.Helper()
	process, err := proc.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Close() })
	return process
}

func mustOpen(t *testing.T, s started, object, variable string) (*threadlocal.Block, uint64) {
	t.Helper()
	found, err := objfile.LookupIn(s.images, object, variable, objfile.ThreadLocal)
	if err != nil {
		t.Fatal(err)
	}
	block, err := threadlocal.Open(held(t, s.first), s.images, found.Image)
	if err != nil {
		t.Fatal(err)
	}
	return block, found.Symbol.Value
}

func TestAddress(t *testing.T) {
	for _, flags := range [][]string{nil, {"-no-pie"}} {
		s := start(t, flags...)
		block, offset := mustOpen(t, s, "threads", "own")
		for _, want := range []struct {
			tid     int
			address uint64
		}{{s.first, s.own}, {s.second, s.secondOwn}} {
			if got, err := block.Address(want.tid, offset); err != nil || got != want.address {
				t.Errorf("thread %d: %#x, %v, want %#x (flags %v)", want.tid, got, err, want.address, flags)
			}
		}
		if _, err := block.Address(1<<22+1, offset); !errors.Is(err, procid.ErrGone) {
			t.Errorf("no such thread: %v", err)
		}
	}
}

func TestLateObject(t *testing.T) {
	s := start(t)
	block, offset := mustOpen(t, s, "library.so", "late")
	if got, err := block.Address(s.first, offset+12); err != nil || got != s.firstLate {
		t.Errorf("%#x, %v, want %#x", got, err, s.firstLate)
	}
	if _, err := block.Address(s.second, offset); !errors.Is(err, threadlocal.ErrNoCopy) {
		t.Errorf("a thread that never used it: %v", err)
	}
}

func TestObjectWithoutStorage(t *testing.T) {
	s := start(t)
	at := slices.IndexFunc(s.images, func(i objfile.Image) bool { return i.Matches("ld*.so*") })
	if _, err := threadlocal.Open(held(t, s.first), s.images, s.images[at]); !errors.Is(err, threadlocal.ErrUnsupported) {
		t.Errorf("the loader's: %v", err)
	}
}
