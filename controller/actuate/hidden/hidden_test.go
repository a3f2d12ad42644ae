// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

const library = `
#include <stdlib.h>
static long unrelated = 5;
static long quick = 7;
static long first, second;
static int flag;
int set_both(long value) { first = second = value; return 0; }
int set_flag(long value) { quick = value; flag = 1; return 0; }
long sum(void) { return unrelated + quick + first + second + flag; }
__attribute__((constructor)) static void begin(void) {
	const char *text = getenv("QUICK");
	if (text) quick = atol(text);
}
`

// mustStart compiles the helper and a library, and starts a process of ours, with an addition
// to the environment, that has loaded the library.
func mustStart(t *testing.T, name, text string, env ...string) (p *Prober, pid int, image objfile.Image) {
	t.Helper()
	helper := targets.Build(t, "../../../dmlib/probe/load.c", "-D_GNU_SOURCE")
	path := targets.BuildText(t, name, text, "-shared", "-fPIC")
	content, err := os.ReadFile(helper)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(helper, path)
	command.Env = append(os.Environ(), env...)
	pid = targets.StartCommand(t, command).PID
	images, err := objfile.Images(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range images {
		if i.Path == path {
			return &Prober{Helper: content, Dir: t.TempDir()}, pid, i
		}
	}
	t.Fatalf("%s is not loaded: %v", path, images)
	return nil, 0, image
}

func quick() Variable {
	return Variable{Name: "quick", Size: 8, Markers: wide(), Environment: "QUICK"}
}

func TestFind(t *testing.T) {
	p, pid, image := mustStart(t, "probed", library)
	flag := Variable{Name: "flag", Size: 4, Markers: wide(), Call: "set_flag", Arguments: []int64{Marker}, Flag: &Neighbour{Variable: quick(), Within: 200}}
	tests := []struct {
		name     string
		variable Variable
		symbol   string // that the search must not look at
		err      error
		text     string
	}{
		{name: "environment", variable: quick(), symbol: "quick"},
		{name: "flag", variable: flag, symbol: "flag"},
		{name: "two follow", variable: Variable{Name: "both", Size: 8, Markers: wide(), Call: "set_both", Arguments: []int64{Marker}}, err: ErrNotUnique},
		{name: "none follows", variable: Variable{Name: "none", Size: 8, Markers: wide(), Environment: "SLOW"}, err: ErrNotUnique},
		{name: "no such function", variable: Variable{Name: "x", Size: 8, Markers: wide(), Call: "set_none", Arguments: []int64{Marker}}, text: "set_none"},
		{name: "not an interpreter", variable: Variable{Name: "y", Size: 8, Markers: wide(), Script: []string{"%d"}, Program: "python*"}, text: "embedded in"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := p.Find(t.Context(), pid, image, tt.variable)
			if tt.symbol == "" {
				if err == nil || tt.err != nil && !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("found %#x, error %v", got, err)
				}
				return
			}
			want, e := image.Symbol(tt.symbol, objfile.Variable)
			if e != nil || err != nil || got != want.Value {
				t.Errorf("found %#x, %v; the symbol is at %#x, %v", got, err, want.Value, e)
			}
		})
	}
}

// What was found is kept by build id, and serves this very file only.
func TestKept(t *testing.T) {
	p, pid, image := mustStart(t, "probed", library)
	want, err := p.Find(t.Context(), pid, image, quick())
	if err != nil {
		t.Fatal(err)
	}
	// Whoever runs this can only read: it never starts anything.
	reader := &Prober{Helper: []byte("not a program"), Dir: p.Dir}
	if got, err := reader.Find(t.Context(), pid, image, quick()); err != nil || got != want {
		t.Errorf("from the directory: %#x, %v; want %#x", got, err, want)
	}
	files, err := filepath.Glob(filepath.Join(p.Dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("kept %v, %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, spoilt := range map[string]string{
		"half a file": string(content[:len(content)/2]),
		"other inode": strings.Replace(string(content), `"inode":`, `"inode":1`, 1),
		"other user":  strings.Replace(string(content), `"uid":`, `"uid":7`, 1),
		"empty":       "",
	} {
		if err := os.WriteFile(files[0], []byte(spoilt), 0o600); err != nil {
			t.Fatal(err)
		}
		reader := &Prober{Helper: []byte("not a program"), Dir: p.Dir}
		if got, err := reader.Find(t.Context(), pid, image, quick()); err == nil {
			t.Errorf("%s: found %#x", name, got)
		}
	}
}

func TestOtherFile(t *testing.T) {
	p, pid, image := mustStart(t, "probed", library)
	for name, change := range map[string]func(){
		"replaced": func() { image.Inode++ },
		"no name":  func() { image.Path += ".old" },
	} {
		kept := image
		change()
		if _, err := p.Find(t.Context(), pid, image, quick()); !errors.Is(err, ErrOtherFile) {
			t.Errorf("%s: %v", name, err)
		}
		image = kept
	}
	var none *Prober
	if _, err := none.Find(t.Context(), pid, image, quick()); !errors.Is(err, ErrNoHelper) {
		t.Errorf("no prober: %v", err)
	}
}

func TestPlaces(t *testing.T) {
	parts := []data{
		{start: 0x1004, content: []byte{1, 0, 0, 0, 9, 1, 0, 0, 1, 0, 0, 0}},
		{start: 0x2000, content: []byte{0, 0, 0, 0, 1, 0, 0}},
	}
	tests := []struct {
		name   string
		want   []byte
		window span
		places []uint64
	}{
		{"aligned only", []byte{1, 0, 0, 0}, span{}, []uint64{0x1004, 0x100c}},
		{"in the window", []byte{1, 0, 0, 0}, span{0x1008, 0x1010}, []uint64{0x100c}},
		{"wide", []byte{9, 1, 0, 0, 1, 0, 0, 0}, span{}, []uint64{0x1008}},
		{"end of a part", []byte{0, 0, 0, 0}, span{}, []uint64{0x2000}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.places, places(parts, tt.want, tt.window)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
