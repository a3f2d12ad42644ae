// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const declaredSample = `attune: tunlet/1
name: mine
version: "1"
summary: for tests
wake:
  - levels: {cpu_user: 1}
symptom: rate.cpu_user > 1.0
objective: {name: cpu, unit: s/s, description: CPU time, value: rate.cpu_user}
reason: it computes
change:
  - {setting: python.gc.threshold0, to: 1000, description: a threshold}
`

// declaredDir has a definition and, if wanted, what runs it.
func declaredDir(t *testing.T, content string, interpreted bool) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "mine"+sdk.DeclarationSuffix), []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
	if interpreted {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, sdk.ProgramPrefix+sdk.Interpreter), "github.com/attune-hpc/attune/tunlets/catalogue/cmd/attune-tunlets")
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does
		out, err := build.CombinedOutput()
		if err != nil {
			t.Fatalf("build the interpreter: %v\n%s", err, out)
		}
		if err := os.Chmod(filepath.Join(dir, sdk.ProgramPrefix+sdk.Interpreter), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestDeclared runs the tunlet in a file by the real interpreter, and refuses one
// that is wrong with all that is wrong.
func TestDeclared(t *testing.T) {
	dir := declaredDir(t, declaredSample, true)
	found := Find([]string{dir}, nil)
	if len(found) != 1 || found[0].Name != "mine" || found[0].Err != nil {
		t.Fatalf("found %+v, want mine, and the interpreter not", found)
	}
	d, first, err := Describe(context.Background(), found[0], Options{})
	if err != nil || d.GetName() != "mine" || len(d.GetKnobs()) != 1 {
		t.Fatalf("describe: %v %v", d, err)
	}
	wrong := strings.NewReplacer("rate.cpu_user > 1.0", "rate.cpu > 1.0", "{cpu_user: 1}", "{cpu_user: 0}").Replace(declaredSample)
	path := filepath.Join(dir, "mine"+sdk.DeclarationSuffix)
	files.Write(t, path, wrong, 0o644)
	_, second, err := Describe(context.Background(), found[0], Options{})
	if !errors.Is(err, errPermanent) || !strings.Contains(err.Error(), path+": line 6: ") || !strings.Contains(err.Error(), path+": line 7: symptom") {
		t.Errorf("describe what is wrong: %v, want both lines, and no further start", err)
	}
	if first == "" || first == second {
		t.Errorf("checksum %q before the change of the file, %q after", first, second)
	}
}

func TestDeclaredTrust(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(dir string) error
		want    string
	}{
		{"no interpreter", func(string) error { return nil }, "there is no attune-tunlet-declarative, which runs it: it comes with Attune's tunlets; install them"},
		{"an interpreter for all", func(dir string) error {
			path := filepath.Join(dir, sdk.ProgramPrefix+sdk.Interpreter)
			return errors.Join(os.WriteFile(path, nil, 0o755), os.Chmod(path, 0o777))
		}, "may be written by others"},
		{"a file for all", func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, sdk.ProgramPrefix+sdk.Interpreter), nil, 0o755), os.Chmod(filepath.Join(dir, "mine"+sdk.DeclarationSuffix), 0o666))
		}, "may be written by others"},
		{"a directory", func(dir string) error {
			path := filepath.Join(dir, "mine"+sdk.DeclarationSuffix)
			return errors.Join(os.WriteFile(filepath.Join(dir, sdk.ProgramPrefix+sdk.Interpreter), nil, 0o755), os.Remove(path), os.Mkdir(path, 0o755))
		}, "is not a regular file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := declaredDir(t, declaredSample, false)
			if err := tt.prepare(dir); err != nil {
				t.Fatal(err)
			}
			found := Find([]string{dir}, nil)
			if len(found) != 1 || found[0].Err == nil || !strings.Contains(found[0].Err.Error(), tt.want) {
				t.Errorf("found %+v, want one that is not trusted: %s", found, tt.want)
			}
		})
	}
}

func TestBinaryBeforeDefinition(t *testing.T) {
	dir := declaredDir(t, declaredSample, false)
	binary := filepath.Join(dir, sdk.ProgramPrefix+"mine")
	files.Write(t, binary, "", 0o755)
	if found := Find([]string{dir}, nil); len(found) != 1 || found[0].Path != binary {
		t.Errorf("found %+v, want the binary", found)
	}
}

func TestNameOf(t *testing.T) {
	for file, want := range map[string]string{
		"/x/attune-tunlet-a": "a", "b.tunlet.yaml": "b", "attune-tunlet-declarative": "", "c.yaml": "", ".tunlet.yaml": "", ".d.tunlet.yaml": "",
	} {
		if got := NameOf(file); got != want {
			t.Errorf("NameOf(%q) = %q, want %q", file, got, want)
		}
	}
}
