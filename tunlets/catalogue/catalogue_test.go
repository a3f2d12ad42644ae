// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Every tunlet is known by the name it gives itself, and costs nothing where it
// is of no use.
func TestDescriptions(t *testing.T) {
	for _, name := range Names() {
		d := New(name)().Describe()
		if d.Name != name {
			t.Errorf("%s calls itself %s", name, d.Name)
		}
		if len(d.Wake) == 0 {
			t.Errorf("%s is started for every program: say in Description.Wake when it is of use", name)
		}
	}
	if New("nothing") != nil {
		t.Error("there is a tunlet of no name")
	}
}

func TestLink(t *testing.T) {
	dir := t.TempDir()
	if err := Link(dir); err == nil {
		t.Error("linked to nothing")
	}
	for name, content := range map[string]string{
		sdk.PackageProgram: "program", sdk.ProgramPrefix + "malloc": "an older one", sdk.ProgramPrefix + "mine": "somebody's own", "else": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{sdk.ProgramPrefix + "gone": sdk.PackageProgram, sdk.ProgramPrefix + "other": "else"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time everything is there
		if err := Link(dir); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{sdk.PackageProgram: "program", sdk.ProgramPrefix + "mine": "somebody's own", "else": "", sdk.ProgramPrefix + "other": "→ else"}
		for _, name := range append(Names(), sdk.Interpreter) {
			want[sdk.ProgramPrefix+name] = "→ " + sdk.PackageProgram
		}
		if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
			t.Error(diff)
		}
	}
}

// contents returns the files of a directory: what is in them, or where they lead.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if to, err := os.Readlink(path); err == nil {
			out[e.Name()] = "→ " + to
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(content)
	}
	return out
}
