// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/inherit"
	"github.com/attune-hpc/attune/internal/launch"
	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestMain fails if a test leaves a goroutine, a child or a descriptor behind.
func TestMain(m *testing.M) {
	readers.ServeIfAsked(Operations()...)
	if len(os.Args) == 4 && os.Args[1] == gatedHelper {
		if err := readers.Serve(os.Stdin, os.Stdout, gatedMeasure(os.Args[2], os.Args[3])); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	leaktest.Main(m)
}

// mustRun runs a command to its end and returns its account, and what wait4(2) said.
func mustRun(t testing.TB, options Options, args ...string) (*account.Account, launch.Exit) {
	t.Helper()
	a, child := mustBegin(t, options, args...)
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	exit := child.Wait()
	record := a.End(patience.Context(t), args, exit)
	if most, mean := record.CoresPeak, record.CoresAverage; most != nil && mean != nil && *most < *mean {
		t.Errorf("%g cores at most, %g on average", *most, *mean)
	}
	return record, exit
}

// mustBegin starts a command. The caller must wait for it and call End and Close.
func mustBegin(t testing.TB, options Options, args ...string) (*Accountant, *launch.Child) {
	t.Helper()
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	command := launch.Command{Args: args, Env: os.Environ(), Signals: launch.Catch(inherit.State{})}
	a.Prepare(&command)
	child, err := launch.Start(t.Context(), command)
	if err != nil {
		t.Fatal(errors.Join(err, a.Close()))
	}
	a.Begin(child)
	return a, child
}

// truth is what the processes of tree.c say that they did; see struct truth there.
type truth struct{ processes, read, written, readCalls, writtenCalls uint64 }

// mustGrow runs a random tree of processes.
func mustGrow(t *testing.T, options Options, seed, processes int, how string) (*account.Account, launch.Exit, truth) {
	t.Helper()
	tree := targets.Build(t, "testdata/tree.c", "-O2", "-pthread")
	file := filepath.Join(t.TempDir(), "truth")
	files.Write(t, file, make([]byte, os.Getpagesize()), 0o666)
	a, exit := mustRun(t, options, tree, file, fmt.Sprint(seed), fmt.Sprint(processes), how)
	if exit.Code != 0 || exit.Signal != 0 {
		t.Fatalf("the tree ended with %+v", exit)
	}
	data := files.Read(t, file)
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(data[8*i:]) }
	return a, exit, truth{word(0), word(1), word(2), word(3), word(4)}
}

// mustLoad is the account of a tree without branches, which may end before its io file is
// opened; without root it cannot be opened afterwards.
func mustLoad(t *testing.T, options Options) *account.Account {
	t.Helper()
	for range 20 {
		if a, _, _ := mustGrow(t, options, 0, 0, "waited"); a.IO.Read != nil {
			return a
		}
	}
	t.Fatal("in no run of twenty was known what a single process read")
	return nil
}

// checkBytes compares what was read and written with the truth. What the loader read
// at the start of the one program that there is comes from a tree without branches.
func checkBytes(t *testing.T, a, loader *account.Account, want truth) {
	t.Helper()
	for _, row := range []struct {
		name      string
		got, base *uint64
		want      uint64
	}{
		{"bytes read", a.IO.Read, loader.IO.Read, want.read},
		{"bytes written", a.IO.Written, loader.IO.Written, want.written},
		{"calls that read", a.IO.ReadCalls, loader.IO.ReadCalls, want.readCalls},
		{"calls that wrote", a.IO.WrittenCalls, loader.IO.WrittenCalls, want.writtenCalls},
		{"processes", a.Processes.Total, new(uint64(0)), want.processes},
	} {
		if row.got == nil || row.base == nil {
			t.Errorf("%s: not measured: %v", row.name, a.Missing)
		} else if *row.got-*row.base != row.want {
			t.Errorf("%s: %d, the program's own count is %d", row.name, *row.got-*row.base, row.want)
		}
	}
}
