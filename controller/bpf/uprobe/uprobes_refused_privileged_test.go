// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

func TestRefusedInstruction(t *testing.T) {
	binary := mustCompile(t, "target.c")
	for mechanism, opts := range mechanisms() {
		t.Run(mechanism, func(t *testing.T) {
			u := mustUprobes(t, opts)
			spec := Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_segment"), Point: 1}
			var refused *RefusedError
			if _, err := u.Attach(spec); !errors.As(err, &refused) || !strings.Contains(err.Error(), "segment prefix") {
				t.Errorf("error %v", err)
			}
			// The other of two functions is probed all the same.
			spec.Symbols = mustSymbols(t, binary, "starts_with_push", "starts_with_segment")
			target := mustStartTarget(t, binary)
			a := mustAttach(t, u, spec)
			if symbols := a.Symbols(); symbols[0].Refused != "" || symbols[1].Refused == "" {
				t.Errorf("symbols %+v", symbols)
			}
			mustWatch(t, u, target.PID, 1)
			target.mustCall(t, "push 10")
			if got := mustAggregate(t, u, target.PID, 1); got.Count != 10 {
				t.Errorf("%d hits, want 10", got.Count)
			}
		})
	}
}

// No process maps the file here, so that only our own mapping can tell.
func TestKernelRefusesWhatItMust(t *testing.T) {
	binary := mustCompile(t, "target.c")
	u := mustUprobes(t, Options{})
	symbols := mustSymbols(t, binary, "starts_with_push", "starts_with_segment")
	mustAttach(t, u, Spec{Path: binary, Symbols: symbols[:1], Point: 1}) // loads
	open, err := openTarget(Spec{Path: binary})
	if err != nil {
		t.Fatal(err)
	}
	defer open.file.Close()
	blind := &attached{target: open, spec: Spec{Place: atEntry}, symbols: []SymbolStatus{{Symbol: symbols[0]}, {Symbol: symbols[1]}}}
	if err := u.link(blind); err != nil {
		t.Fatal(err)
	}
	u.detachProbes(blind)
	if blind.symbols[0].Refused != "" || blind.symbols[1].Refused != "the kernel refuses to probe this instruction" {
		t.Errorf("symbols %+v", blind.symbols)
	}
}

// TestFilesUnderValgrind: its programs are ended by breakpoints that others see.
func TestFilesUnderValgrind(t *testing.T) {
	binary := mustCompile(t, "target.c")
	dir := filepath.Join(t.TempDir(), "valgrind")
	tool := filepath.Join(dir, "memcheck-amd64-linux")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Rename(binary, tool)); err != nil {
		t.Fatal(err)
	}
	u := mustUprobes(t, Options{})
	spec := Spec{Path: tool, Symbols: mustSymbols(t, tool, "starts_with_push"), Point: 1}
	target := mustStartTarget(t, tool)
	if a, err := u.Attach(spec); err == nil || !strings.Contains(err.Error(), "Valgrind") {
		t.Errorf("attached: %v, error %v", a, err)
	}
	target.mustEnd(t)
	mustAttach(t, u, spec)
}

func TestBadFiles(t *testing.T) {
	u := mustUprobes(t, Options{})
	text := t.TempDir() + "/text"
	files.Write(t, text, "#!/bin/sh\n", 0o700)
	for _, path := range []string{text, "/nonexistent", "/dev/null"} {
		spec := Spec{Path: path, Symbols: []Symbol{{Name: "main", Offset: 1 << 20}}, Point: 1}
		if a, err := u.Attach(spec); err == nil {
			a.Close()
			t.Errorf("attached to %s", path)
		}
	}
	binary := mustCompile(t, "target.c")
	var refused *RefusedError
	if _, err := u.Attach(Spec{Path: binary, Symbols: []Symbol{{Name: "far", Offset: 1 << 40}}, Point: 1}); !errors.As(err, &refused) {
		t.Errorf("offset beyond the file: %v", err)
	}
}

// TestFailureKeepsOtherFiles: a point that cannot be attached to a file goes on counting in
// the others, in the processes that were watched before.
func TestFailureKeepsOtherFiles(t *testing.T) {
	binary, other := mustCompile(t, "target.c"), mustCompile(t, "../../procevent/testdata/tree.c")
	u := mustUprobes(t, Options{MaxWatches: 2})
	target := mustStartTarget(t, binary)
	mustAttach(t, u, Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 1})
	mustWatch(t, u, target.PID, 1)
	target.mustCall(t, "push 10")
	watched := Watch{PID: target.PID}
	for name, row := range map[string]struct {
		symbols []Symbol
		watches []Watch
		want    error // nil: a refusal
	}{
		"no room for a watch":  {mustSymbols(t, other, "main"), []Watch{watched, {PID: 1001, StartTicks: 7}, {PID: 1002, StartTicks: 7}}, ErrTooManyWatches},
		"no place for a probe": {[]Symbol{{Name: "far", Offset: 1 << 40}}, []Watch{watched, {PID: 1001, StartTicks: 7}}, nil},
	} {
		_, err := u.Attach(Spec{Path: other, Symbols: row.symbols, Point: 1, Watches: row.watches})
		var refused *RefusedError
		if row.want == nil && !errors.As(err, &refused) || row.want != nil && !errors.Is(err, row.want) {
			t.Errorf("%s: %v", name, err)
		}
		target.mustCall(t, "push 5")
		if err := u.Watch(Watch{PID: 1003, StartTicks: 7, Point: 1}); err != nil {
			t.Errorf("%s: what was begun goes on: %v", name, err)
		}
		if err := u.UnwatchProcess(1003, 1); err != nil {
			t.Fatal(err)
		}
	}
	if got := mustAggregate(t, u, target.PID, 1); got.Count != 20 {
		t.Errorf("%d hits, want 20", got.Count)
	}
}

func TestConflictsAndLimits(t *testing.T) {
	binary, other := mustCompile(t, "target.c"), mustCompile(t, "../../procevent/testdata/tree.c")
	u := mustUprobes(t, Options{MaxWatches: 2})
	spec := Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 1}
	mustAttach(t, u, spec)
	spec.MinValue = 5
	if _, err := u.Attach(spec); !errors.Is(err, errSpec) {
		t.Errorf("same point, same file, other predicate: %v", err)
	}
	if _, err := u.Attach(Spec{Path: other, Symbols: mustSymbols(t, other, "main"), Point: 1, MinValue: 5}); !errors.Is(err, errSpec) {
		t.Errorf("same point, other file, other predicate: %v", err)
	}
	if err := u.Watch(Watch{PID: 1, Point: 77}); err == nil {
		t.Error("watched at a point that is not attached")
	}
	watch := func(pid int) error { return u.Watch(Watch{PID: pid, StartTicks: 7, Point: 1}) }
	for _, pid := range []int{1001, 1001, 1002} {
		if err := watch(pid); err != nil {
			t.Fatal(err)
		}
	}
	if err := watch(1003); !errors.Is(err, ErrTooManyWatches) {
		t.Errorf("third of two watches: %v", err)
	}
	if err := u.UnwatchProcess(1001, 1); err != nil {
		t.Fatal(err)
	}
	if err := watch(1003); err != nil {
		t.Error(err)
	}
}
