// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// running is a process as the package wants it.
type running struct{ *proc.Handle }

func (r running) Images() ([]objfile.Image, error) { return objfile.Images(r.PID()) }

func mustOpen(t testing.TB, pid int) running {
	t.Helper()
	handle, err := proc.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = handle.Close() })
	return running{handle}
}

// pythons are the interpreters that there are here, by the files that they run.
func pythons(t testing.TB) (found map[string]string) {
	t.Helper()
	found = make(map[string]string)
	for _, command := range []string{"/usr/bin/python3", "python3"} {
		file, err := exec.Command(command, "-c", "import sys; print(sys.executable)").Output()
		if err == nil {
			found[strings.TrimSpace(string(file))] = command
		}
	}
	if len(found) == 0 {
		targets.Python(t) // says so
	}
	return found
}

const counted = "'%d %d %d' % tuple(g['collections'] for g in gc.get_stats())"

// The interpreter says itself how often it has collected, and what survived.
func TestInterpreters(t *testing.T) {
	for python := range pythons(t) {
		t.Run(strings.ReplaceAll(strings.TrimPrefix(python, "/"), "/", "_"), func(t *testing.T) {
			target := targets.StartScript(t, python, targets.Evaluates)
			program := mustOpen(t, target.PID)
			at, err := Locate(program)
			if version := target.Ask(t, "sys.version_info[:2] in ((3, 11), (3, 12), (3, 13))"); version != "True" {
				if !errors.Is(err, ErrNoCollector) {
					t.Fatalf("of another version: %#x, %v", at, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			target.Ask(t, "gc.disable() or gc.set_threshold(900, 11, 12) or setattr(gc, 'kept', [[] for _ in range(50000)]) or gc.collect(1)")
			before, err := Read(program, at)
			if err != nil {
				t.Fatal(err)
			}
			want := target.Ask(t, counted)
			if got := fmt.Sprintf("%d %d %d", before.collections[0], before.collections[1], before.collections[2]); got != want {
				t.Errorf("it has collected %s, want %s", got, want)
			}
			if before.thresholds != [generations]uint64{900, 11, 12} {
				t.Errorf("thresholds %v", before.thresholds)
			}
			target.Ask(t, "gc.collect() and 0 or gc.collect()")
			after, err := Read(program, at)
			if err != nil {
				t.Fatal(err)
			}
			if visits, ok := after.VisitsSince(before); !ok || visits < 2*50_000 || visits > 2*100_000 {
				t.Errorf("it has looked at %d objects, %v: %+v and %+v", visits, ok, before, after)
			}
		})
	}
}

// A program that is no interpreter has no collector, whatever it is called.
func TestNoInterpreter(t *testing.T) {
	content := files.Read(t, "/bin/cat")
	file := filepath.Join(t.TempDir(), "python3")
	files.Write(t, file, content, 0o700)
	cmd := exec.Command(file)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	if at, err := Locate(mustOpen(t, cmd.Process.Pid)); !errors.Is(err, ErrNoCollector) {
		t.Errorf("found at %#x: %v", at, err)
	}
}

func BenchmarkLocate(b *testing.B) {
	for python := range pythons(b) {
		b.Run(filepath.Base(python), func(b *testing.B) {
			program := mustOpen(b, targets.StartScript(b, python, targets.Evaluates).PID)
			for b.Loop() {
				if _, err := Locate(program); err != nil {
					b.Skip(err)
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for python := range pythons(b) {
		program := mustOpen(b, targets.StartScript(b, python, targets.Evaluates).PID)
		at, err := Locate(program)
		if err != nil {
			continue
		}
		for b.Loop() {
			if _, err := Read(program, at); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	b.Skip("no interpreter with a collector that is known")
}

// likeCollector is a program in which something looks like the state of a collector.
const likeCollector = `
#include <stdio.h>
#ifdef VERSION
const unsigned long Py_Version = VERSION;
#endif
void *_PyRuntime[256];
int main(void) {
    _PyRuntime[16 + 9] = &_PyRuntime[16];
    puts("ready");
    fflush(stdout);
    return getchar() == 'x';
}
`

// What is known is the layout of some versions: that of a later one may look the same.
func TestVersions(t *testing.T) {
	tests := []struct {
		name, flag string
		refused    string // empty: it is known
	}{
		{"3.10", "-DOLD", "Py_Version"},
		{"3.11", "-DVERSION=0x030b02f0", ""},
		{"3.13", "-DVERSION=0x030d0af0", ""},
		{"3.14", "-DVERSION=0x030e00f0", "CPython 3.14"},
		{"4.12", "-DVERSION=0x040c00f0", "CPython 4.12"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target := targets.Start(t, targets.BuildText(t, "python"+tt.name, likeCollector, "-rdynamic", tt.flag))
			at, err := Locate(mustOpen(t, target.PID))
			if tt.refused == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrNoCollector) || !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("found at %#x: %v", at, err)
			}
		})
	}
}
