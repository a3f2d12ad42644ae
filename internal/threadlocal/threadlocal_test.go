// SPDX-License-Identifier: Apache-2.0

package threadlocal_test

import (
	"errors"
	"fmt"
	"os/exec"
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
	return startAfter(t, nil, flags...)
}

// startAfter starts the program with a library that is to be loaded before, if any.
func startAfter(t *testing.T, before []string, flags ...string) started {
	t.Helper()
	program := targets.Build(t, "testdata/threads.c", append([]string{"-ldl"}, flags...)...)
	library := targets.BuildLibrary(t, "testdata/library.c")
	target := targets.StartCommand(t, exec.Command(program, append([]string{library}, before...)...))
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

// TestLateObject: a thread that has used another object, which had the late one's number
// and is loaded no more, has no copy either.
func TestLateObject(t *testing.T) {
	for name, before := range map[string][]string{
		"alone":   nil,
		"another": {targets.BuildLibrary(t, "testdata/before.c")},
	} {
		t.Run(name, func(t *testing.T) {
			s := startAfter(t, before)
			block, offset := mustOpen(t, s, "liblibrary.so", "late")
			if got, err := block.Address(s.first, offset+12); err != nil || got != s.firstLate {
				t.Errorf("%#x, %v, want %#x", got, err, s.firstLate)
			}
			if got, err := block.Address(s.second, offset); !errors.Is(err, threadlocal.ErrNoCopy) {
				t.Errorf("a thread that never used it: %#x, %v", got, err)
			}
		})
	}
}

func TestObjectWithoutStorage(t *testing.T) {
	s := start(t)
	at := slices.IndexFunc(s.images, func(i objfile.Image) bool { return i.Matches("ld*.so*") })
	if _, err := threadlocal.Open(held(t, s.first), s.images, s.images[at]); !errors.Is(err, threadlocal.ErrUnsupported) {
		t.Errorf("the loader's: %v", err)
	}
}
