// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/cmd/attune/tunlet"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

func TestTunletInfo(t *testing.T) {
	got := shell(t, "$ATTUNE_BINARY tunlet info --json malloc", "")
	var info tunlet.Info
	if err := json.Unmarshal([]byte(got.stdout), &info); err != nil || got.code != 0 {
		t.Fatalf("%+v: %v", got, err)
	}
	if info.Name != "malloc" || len(info.SHA256) != 64 || len(info.Knobs) != 3 || len(info.Wake) == 0 || info.Path != filepath.Join(bin, "attune-tunlet-malloc") {
		t.Errorf("%+v", info)
	}
	text := shell(t, "$ATTUNE_BINARY tunlet info malloc", "")
	for _, want := range []string{"malloc 1 ", info.SHA256, "by a process with cpu_system of at least", "glibc.malloc.top_pad, 0 to ", "memory_bytes, bytes: "} {
		if text.code != 0 || !strings.Contains(text.stdout, want) {
			t.Errorf("%+v, want %q", text, want)
		}
	}
}

// A new tunlet is one at once; what cannot be made is refused with the remedy.
func TestTunletNew(t *testing.T) {
	dir := t.TempDir()
	if got := shell(t, "cd "+dir+" && umask 022 && $ATTUNE_BINARY tunlet new --yaml mine", ""); got.code != 0 || !strings.HasPrefix(got.stdout, "made mine.tunlet.yaml\n") {
		t.Fatalf("%+v", got)
	}
	if got := shell(t, "$ATTUNE_BINARY tunlet list --tunlet-dir "+dir, ""); got.code != 0 || !strings.Contains(got.stdout, filepath.Join(dir, "mine.tunlet.yaml")) {
		t.Errorf("%+v", got)
	}
	for _, tt := range []struct {
		arguments, want string
		code            int
	}{
		{"--yaml mine", "choose another name, or another directory with --dir", 2},
		{"--yaml My", "has lower case letters, digits and hyphens, and begins with a letter; choose another name", 2},
		{"--yaml", "the name of the new tunlet is needed; write: attune tunlet new NAME", 2},
		{"--sdk . other", "go.mod: no such file or directory", 1},
		{"other", "name a checkout of Attune's source with --sdk DIR, or write the tunlet in YAML (--yaml)", 2},
	} {
		got := shell(t, "cd "+dir+" && $ATTUNE_BINARY tunlet new "+tt.arguments, "")
		if got.code != tt.code || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("%s: %+v, want %d and %q", tt.arguments, got, tt.code, tt.want)
		}
	}
}

// Where others could write to what a compiler makes, the next steps say what to do
// about it: a tunlet that was made by them would not be used.
func TestTunletNewInGo(t *testing.T) {
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for umask, want := range map[string]string{
		"022": "  cd mine && go test . && go build -o", "077": "  cd mine && go test . && go build -o",
		"002": "  cd mine && umask 022 && go test . && go build -o", "020": "  cd mine && umask 022 && go test . && go build -o",
	} {
		got := shell(t, "umask "+umask+" && $ATTUNE_BINARY tunlet new mine --sdk "+checkout, "")
		if got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("umask %s: %+v, want %q", umask, got, want)
		}
	}
}

// What is wrong with a tunlet is found before it is installed, and nothing is
// left of the try.
func TestTunletInstall(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	own := filepath.Join(dir, "data/attune/tunlets")
	file := func(name, content string, mode os.FileMode) {
		files.Write(t, filepath.Join(dir, name), content, mode)
	}
	file("attune-tunlet-crash", "#!/bin/sh\necho no licence >&2\nexit 3\n", 0o755)
	file("attune-tunlet-foreign", "#!/usr/bin/nosuch\n", 0o755)
	file("attune-tunlet-plain", "", 0o644)
	file("something", "#!/bin/sh\n", 0o755)
	file("attune-tunlet-garbage", "\x00", 0o755)
	file("attune-tunlet-another", "#!/bin/sh\nexec "+dir+"/attune-tunlet-malloc\n", 0o755)
	for _, name := range []string{"malloc", "declarative", "omp-spin"} { // the last one has not been asked before: it is started
		if err := os.Symlink(filepath.Join(bin, "attune-tunlets"), filepath.Join(dir, "attune-tunlet-"+name)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name, args, want string
		code             int
	}{
		{"no file", "install", "of one tunlet", 2},
		{"not there", "install attune-tunlet-none", "no such file", 2},
		{"another name", "install something", "attune-tunlet-NAME", 2},
		{"no program", "install attune-tunlet-plain", "chmod +x", 2},
		{"does not answer", "install attune-tunlet-crash", "no licence", 1},
		{"without its interpreter", "install attune-tunlet-foreign", "tunlet foreign: there is no /usr/bin/nosuch, by which it is run; install that", 1},
		{"cannot be executed", "install attune-tunlet-garbage", "tunlet garbage: ", 1},
		{"calls itself something else", "install attune-tunlet-another", `tunlet another: attune-tunlet-another calls itself "malloc"`, 1},
		{"good", "install attune-tunlet-malloc", "installed malloc 1 as " + own + "/attune-tunlet-malloc", 0},
		{"not the one that is used", "install --force attune-tunlet-malloc", "which comes first", 0},
		{"there already", "install attune-tunlet-malloc", "--force", 2},
		{"elsewhere", "install --dir " + dir + "/else attune-tunlet-malloc", "comes first", 0},
		{"a relative directory", "install --dir here attune-tunlet-omp-spin", "as " + dir + "/here/attune-tunlet-omp-spin", 0},
		{"remove nothing", "remove", "of one tunlet", 2},
		{"remove what is not there", "remove none", "no tunlet", 2},
		{"remove no name", "remove ''", "no tunlet", 2},
		{"remove the interpreter", "remove --dir . declarative", `no tunlet "declarative" in .`, 2},
		{"remove a path", "remove ../x", "of one tunlet", 2},
		{"remove", "remove malloc", "removed " + own + "/attune-tunlet-malloc", 0},
		{"remove what is elsewhere", "remove malloc", filepath.Join(bin, "attune-tunlet-malloc") + ", and not in", 2},
		{"info of none", "info none", "there are: malloc", 2},
		{"info of nothing", "info", "of one tunlet", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := shellIn(t, dir, "umask 077; $ATTUNE_BINARY tunlet "+tt.args, "")
			if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.want) || strings.Contains(got.stderr, ".install-") {
				t.Errorf("%+v; want code %d, %q", got, tt.code, tt.want)
			}
		})
	}
	if entries, err := os.ReadDir(own); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// What is wrong in a file is said of the one that was named, not of the copy that was tried.
func TestTunletInstallOfAWrongFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	own := filepath.Join(dir, "data/attune/tunlets")
	if err := errors.Join(os.MkdirAll(own, 0o755), os.Symlink(filepath.Join(bin, "attune-tunlets"), filepath.Join(own, "attune-tunlet-declarative")),
		os.WriteFile(filepath.Join(dir, "wrong.tunlet.yaml"), []byte("attune: tunlet/1\nname: wrong\nnonsense: 1\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	got := shellIn(t, dir, "umask 022; $ATTUNE_BINARY tunlet install ./wrong.tunlet.yaml", "")
	if got.code != 1 || !strings.Contains(got.stderr, "tunlet wrong: wrong.tunlet.yaml: line ") || strings.Contains(got.stderr, own) {
		t.Errorf("%+v", got)
	}
}

// A tunlet of several files is installed with all of them, or not at all: it is started
// where it is to be, whether or not it was known before.
func TestTunletInstallSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	script := "#!/bin/sh\nexec \"$(dirname \"$0\")/lib/attune-tunlet-malloc\"\n"
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "src/lib"), 0o755), os.Mkdir(filepath.Join(dir, "alone"), 0o755),
		os.WriteFile(filepath.Join(dir, "src/attune-tunlet-malloc"), []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		run, want string
		code      int
	}{
		{"cp " + bin + "/attune-tunlets src/lib/attune-tunlet-malloc; cp $ATTUNE_BINARY alone/attune; alone/attune tunlet test src/attune-tunlet-malloc", "ok    describes itself", 0},
		{"alone/attune tunlet info --tunlet-dir src malloc", "  " + dir + "/src/attune-tunlet-malloc", 0}, // it is known from now on
		{"alone/attune tunlet install src/attune-tunlet-malloc", "name them too: attune tunlet install src/attune-tunlet-malloc FILE", 1},
		{"alone/attune tunlet install src/attune-tunlet-malloc src/none", "no such file", 2},
		{"alone/attune tunlet install src/attune-tunlet-malloc src/lib", "installed malloc 1 as " + dir + "/data/attune/tunlets/attune-tunlet-malloc: ", 0},
		{"alone/attune tunlet list", "malloc  " + dir + "/data/attune/tunlets/attune-tunlet-malloc/attune-tunlet-malloc\n", 0},
		{"alone/attune tunlet test data/attune/tunlets/attune-tunlet-malloc", "ok    describes itself", 0},
		{"alone/attune tunlet install src/attune-tunlet-malloc src/lib", "--force", 2},
		{"alone/attune tunlet install --force data/attune/tunlets/attune-tunlet-malloc/", "installed malloc 1", 0},
		{"alone/attune tunlet install data/attune/tunlets/attune-tunlet-malloc src/lib", "needs no further files", 2},
		{"alone/attune tunlet remove malloc && ls -A data/attune/tunlets | wc -l", "\n0\n", 0},
	} {
		if got := shellIn(t, dir, row.run, ""); got.code != row.code || !strings.Contains(got.stdout+got.stderr, row.want) {
			t.Errorf("%s: %+v; want code %d, %q", row.run, got, row.code, row.want)
		}
	}
}

// A tunlet of one's own is found where it was installed, and used.
func TestInstalledTunletIsUsed(t *testing.T) {
	dir := t.TempDir()
	got := shellIn(t, dir, `export XDG_DATA_HOME=$PWD/data; mkdir -p alone; cp $ATTUNE_BINARY alone/attune
		cp `+bin+`/attune-tunlets attune-tunlet-mpi-progress
		alone/attune tunlet install attune-tunlet-mpi-progress && alone/attune tunlet list && alone/attune tunlet info mpi-progress`, "")
	path := filepath.Join(dir, "data/attune/tunlets/attune-tunlet-mpi-progress")
	if got.code != 0 || !strings.Contains(got.stdout, "mpi-progress  "+path) || strings.Contains(got.stdout, "does not use") || !strings.Contains(got.stdout, "openmpi.yield_when_idle") {
		t.Errorf("%+v", got)
	}
}

// The suite runs on real processes, of programs and of files, and says which of
// its parts a bad tunlet fails.
func TestTunletTest(t *testing.T) {
	dir := t.TempDir()
	wrong := filepath.Join(dir, "restless.tunlet.yaml")
	content := `attune: tunlet/1
name: restless
version: "1"
summary: takes every program for a sick one
wake:
  - levels: {cpu_user: 1}
symptom: rate.cpu_user > 0.0
objective: {name: cpu, unit: s/s, description: CPU time, value: rate.cpu_user}
reason: it computes
change:
  - {setting: python.gc.threshold0, to: 1000, description: a threshold}
`
	misnamed := filepath.Join(dir, "names/attune-tunlet-another")
	if err := errors.Join(os.WriteFile(wrong, []byte(content), 0o644), os.Mkdir(filepath.Dir(misnamed), 0o755),
		os.WriteFile(misnamed, []byte("#!/bin/sh\nexec "+filepath.Dir(misnamed)+"/attune-tunlet-aggregation\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"attune-tunlet-declarative", "names/attune-tunlet-aggregation"} {
		if err := os.Symlink(filepath.Join(bin, "attune-tunlets"), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		path string
		code int
		want []string
	}{
		{"$(dirname $ATTUNE_BINARY)/attune-tunlet-malloc", 0, []string{"ok    describes itself", "ok    does the same in every session"}},
		{dir, 1, []string{"restless (" + wrong + ")", "ok    describes itself", "FAIL  is silent on a computing program\n      a program that computes: proposed "}},
		{"--option variable=n " + filepath.Dir(misnamed) + "/attune-tunlet-aggregation", 0, []string{"ok    names only what exists"}},
		{"--option size=n " + filepath.Dir(misnamed) + "/attune-tunlet-aggregation", 1, []string{`FAIL  configure: option size: "n" is not a whole number`}},
		{"--option variable " + dir, 2, nil},
		{misnamed, 1, []string{"FAIL  has the name of its file\n      it calls itself \"aggregation\""}},
		{"/nowhere", 2, nil},
		{"/", 2, nil},
	} {
		got := shell(t, "$ATTUNE_BINARY tunlet test "+tt.path, "")
		if got.code != tt.code {
			t.Errorf("%s: %+v, want exit code %d", tt.path, got, tt.code)
		}
		for _, want := range tt.want {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%s:\n%s\nwant %q", tt.path, got.stdout, want)
			}
		}
	}
}

// What a tunlet names is looked for: settings always, variables and measure points in the
// program, which does not run for it.
func TestTunletCheck(t *testing.T) {
	dir := t.TempDir()
	program := targets.Build(t, "testdata/steps.c", "-g")
	content := func(variable, function, setting, hook string) []byte {
		return fmt.Appendf(nil, `attune: tunlet/1
name: names
version: "1"
summary: names things
wake:
  - levels: {cpu_user: 1e8}
points:
  - {id: steps, function: %s}
  - {id: hooked, hook: %s}
symptom: rate.cpu_user > 1e8
objective: {name: steps, unit: 1/s, description: steps, value: point.steps.rate}
reason: it steps
change:
  - {variable: {object: "*", symbol: %s, size: 4}, to: 1, description: a variable}
  - {setting: %s, to: 1, description: a setting}
`, function, hook, variable, setting)
	}
	file := filepath.Join(dir, "names.tunlet.yaml")
	if err := os.Symlink(filepath.Join(bin, "attune-tunlets"), filepath.Join(dir, "attune-tunlet-declarative")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		content []byte
		flags   string
		code    int
		want    []string
	}{
		{content("sink", "step", "glibc.malloc.top_pad", "malloc"), "", 0, []string{
			"ok    description", "?     knob sink, variable *:sink", "ok    knob glibc.malloc.top_pad, setting", "?     measure point steps", "ok    measure point hooked",
		}},
		{content("sink", "step", "glibc.malloc.top_pad", "malloc"), "--program " + program, 0, []string{"ok    knob sink", "ok    measure point steps"}},
		{content("sinkk", "stepp", "glibc.malloc.top_padd", "maloc"), "--program " + program, 1, []string{
			"FAIL  knob sinkk, variable *:sinkk: no such symbol: sinkk in " + program + "; close to it: sink",
			"FAIL  knob glibc.malloc.top_padd, setting glibc.malloc.top_padd: there is no setting glibc.malloc.top_padd; close to it: glibc.malloc.top_pad",
			"FAIL  measure point steps: no such symbol: ", "FAIL  measure point hooked: DMLib has no hook maloc; close to it: malloc",
		}},
		{bytes.ReplaceAll(content("sink", "step", "glibc.malloc.top_pad", "malloc"), []byte("size: 4"), []byte("size: 8")), "--program " + program, 1, []string{
			"FAIL  knob sink, variable *:sink: it has 4 bytes in " + program + ", not 8",
		}},
		{bytes.ReplaceAll(content("sink", "step", "glibc.malloc.top_pad", "malloc"), []byte("size: 4"), []byte("size: 4, type: real")), "--program " + program, 1, []string{
			"FAIL  knob sink, variable *:sink: its type in " + program + " is volatile int, which takes no real number: give it an integer",
		}},
		{bytes.ReplaceAll(content("weight", "step", "glibc.malloc.top_pad", "malloc"), []byte("size: 4"), []byte("size: 8")), "--program " + program, 0, []string{"ok    knob weight"}},
		{[]byte("attune: tunlet/1\n"), "", 1, []string{"FAIL  description: "}},
		{content("sink", "step", "glibc.malloc.top_pad", "malloc"), "--program /nowhere", 2, []string{"no such file"}},
	} {
		files.Write(t, file, row.content, 0o644)
		got := shell(t, "$ATTUNE_BINARY tunlet check "+row.flags+" "+file, "")
		if got.code != row.code {
			t.Errorf("%s: %+v, want exit code %d", row.flags, got, row.code)
		}
		for _, want := range row.want {
			if !strings.Contains(got.stdout+got.stderr, want) {
				t.Errorf("%s: %s%s\nwant %q", row.flags, got.stdout, got.stderr, want)
			}
		}
	}
}

// Settings that a tunlet does not have are refused before the program is started,
// as all that is wrong is; those of a tunlet that is not installed here are not.
func TestWrongSettingsOfTunlets(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := settings.UserDir(os.Getenv)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, settings string
		code           int
		says           string
	}{
		{"good", `malloc: {memory_bytes: "1000000000"}`, 0, ""},
		{"unknown", `malloc: {nosuch: "1"}`, 2, `settings of tunlet malloc: option "nosuch": unknown; there is memory_bytes`},
		{"no number", `malloc: {memory_bytes: much}`, 2, "settings of tunlet malloc: option memory_bytes"},
		{"not installed", `nosuch: {a: "1"}`, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files.Write(t, filepath.Join(dir, "attune.yaml"), "tunlets:\n  "+tt.settings+"\n", 0o600)
			got := shell(t, `$RUN echo started`, quietly())
			if got.code != tt.code || (got.stdout == "") != (tt.code != 0) || !strings.Contains(got.stderr, tt.says) {
				t.Errorf("%+v, want code %d and %q", got, tt.code, tt.says)
			}
		})
	}
}
