// SPDX-License-Identifier: Apache-2.0

package skeleton_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/attune-hpc/attune/tunlets/declarative"
	"github.com/attune-hpc/attune/tunlets/skeleton"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

var update = flag.Bool("update", false, "write modules.txt")

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"mine": true, "my-tunlet2": true, "": false, "My": false, "2nd": false, "a/b": false, "..": false, "a_b": false,
		"declarative": false, strings.Repeat("a", 64): false,
	} {
		if err := skeleton.CheckName(name); (err == nil) != ok || err != nil && !errors.Is(err, skeleton.ErrName) {
			t.Errorf("%q: %v, want a name: %v", name, err, ok)
		}
	}
}

// The file is a tunlet as it is, which passes the suite.
func TestYAML(t *testing.T) {
	path, err := skeleton.WriteYAML(t.TempDir(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	d, err := declarative.Read(path, path)
	if err != nil {
		t.Fatal(err)
	}
	tunlettest.Suite(t, d.New)
	if _, err := skeleton.WriteYAML(filepath.Dir(path), "mine"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second time: %v, want that it is there", err)
	}
}

func TestGo(t *testing.T) {
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path, err := skeleton.WriteGo(dir, "mine", skeleton.Source{Checkout: checkout})
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"main.go": "Command attune-tunlet-mine is", "tunlet.go": `name = "mine"`, "tunlet_test.go": "TestSuite", "model.go": "",
		"model_test.go": "", "go.sum": "google.golang.org/grpc ",
		"go.mod": "replace github.com/attune-hpc/attune => " + modfile.AutoQuote(checkout) + "\n",
	} {
		content, err := os.ReadFile(filepath.Join(path, file))
		if err != nil || !strings.Contains(string(content), want) || strings.Contains(string(content), "small-writes") {
			t.Errorf("%s (%v) lacks %q, or has the name of the skeleton", file, err, want)
		}
	}
	if _, err := skeleton.WriteGo(dir, "mine", skeleton.Source{Checkout: checkout}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second time: %v, want that it is there", err)
	}
}

// TestModules: a new tunlet requires what the SDK and its tests are built of, and nothing else of
// Attune's.
func TestModules(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./tunlets/sdk/...", "./tunlets/tunlettest")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	paths := strings.Fields(string(out))
	slices.Sort(paths)
	want := strings.Join(slices.Compact(paths), "\n") + "\n"
	if *update {
		if err := os.WriteFile("modules.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("modules.txt"); err != nil || string(got) != want {
		t.Errorf("modules.txt is\n%s (%v), want\n%s\nmake it with -update", got, err, want)
	}
}

// A checkout may be in a directory of any name.
func TestOddCheckout(t *testing.T) {
	checkout := filepath.Join(t.TempDir(), `my "own" source => here`)
	if err := errors.Join(
		os.Mkdir(checkout, 0o755),
		os.WriteFile(filepath.Join(checkout, "go.mod"), []byte("module github.com/attune-hpc/attune\n"), 0o644),
		os.WriteFile(filepath.Join(checkout, "go.sum"), nil, 0o644),
	); err != nil {
		t.Fatal(err)
	}
	path, err := skeleton.WriteGo(t.TempDir(), "mine", skeleton.Source{Checkout: checkout})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/attune-hpc/attune")
	cmd.Dir, cmd.Env = path, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != checkout {
		t.Errorf("the SDK is in %s (%v), want %s", out, err, checkout)
	}
}

// Without a checkout the version is fetched; what is none is refused before
// anything is made.
func TestSources(t *testing.T) {
	dir := t.TempDir()
	path, err := skeleton.WriteGo(dir, "mine", skeleton.Source{Version: "v1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	goMod, err := os.ReadFile(filepath.Join(path, "go.mod"))
	if err != nil || !strings.Contains(string(goMod), "require github.com/attune-hpc/attune v1.2.3\n") {
		t.Errorf("go.mod: %v\n%s", err, goMod)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := skeleton.WriteGo(dir, "other", skeleton.Source{Checkout: dir}); err == nil || !strings.Contains(err.Error(), "is not Attune's source") {
		t.Errorf("another module: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("made nevertheless: %v", err)
	}
}
