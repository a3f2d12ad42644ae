// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/attune/pack"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// packedBash is a packed shell, which says nothing at its end.
var packedBash = sync.OnceValues(func() (string, error) {
	out := filepath.Join(bin, "bash.tuned")
	return out, packInto(out, "/bin/bash", "--quiet")
})

func packInto(out, program string, flags ...string) error {
	cmd := exec.Command(filepath.Join(bin, "attune"), append([]string{"pack", program, "-o", out}, flags...)...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

func mustPack(t *testing.T, program string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(program)+".tuned")
	if err := packInto(out, program, flags...); err != nil {
		t.Fatal(err)
	}
	return out
}

func mustPackBash(t *testing.T) string {
	t.Helper()
	path, err := packedBash()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// emptyPlaces gives a packed program empty directories, and returns what is in them.
func emptyPlaces(t *testing.T) (list func() []string) {
	t.Helper()
	base, err := os.MkdirTemp("/tmp", "p") //nolint:usetesting // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", base)
	if os.Geteuid() == 0 {
		t.Setenv("XDG_RUNTIME_DIR", base) // root's own place comes before TMPDIR
	}
	return func() []string {
		found, err := filepath.Glob(filepath.Join(base, "attune*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
}

func TestUnpackGivesBackWhatWasPacked(t *testing.T) {
	packed, dir := mustPackBash(t), t.TempDir()
	got := shell(t, "$ATTUNE_BINARY unpack --extract "+dir+"/parts "+packed+" && cd "+dir+
		"/parts && cmp bash /bin/bash && cmp attune $ATTUNE_BINARY && cmp attune-tunlet-malloc "+bin+"/attune-tunlets && "+
		"stat -c %a bash attune && readlink attune-tunlet-malloc", "")
	want := "755\n755\n"
	if got.code != 0 || !strings.HasPrefix(got.stdout, want) || !strings.HasSuffix(got.stdout, "attune-tunlets\n") {
		t.Errorf("%+v", got)
	}
	listed := shell(t, "$ATTUNE_BINARY unpack --list "+packed, "")
	for _, part := range []string{"program bash ", "controller attune ", "tunlet attune-tunlets ", "link attune-tunlet-malloc ", "library libattune-dm-", "config attune.yaml ", "tunlets.json "} {
		if !strings.Contains(strings.Join(strings.Fields(listed.stdout), " "), part) {
			t.Errorf("no %q in\n%s", part, listed.stdout)
		}
	}
}

// TestPackedForWhomTheProgramIs: what nobody else may read stays so.
func TestPackedForWhomTheProgramIs(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	files.Write(t, program, files.Read(t, "/bin/true"), 0o700)
	info, err := os.Stat(mustPack(t, program))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestPackRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"script": 0o755, "plain": 0o644} {
		files.Write(t, filepath.Join(dir, name), "#!/bin/sh\n", mode)
	}
	program := files.Read(t, "/bin/true")
	setuid := filepath.Join(dir, "setuid")
	if err := errors.Join(os.WriteFile(setuid, program, 0o755), os.Chmod(setuid, 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	packed := mustPackBash(t)
	tests := []struct {
		name, arguments, want string
		code                  int
	}{
		{"no output", "/bin/true", "an output file", 2},
		{"script", dir + "/script -o x", "is a script", 1},
		{"not executable", dir + "/plain -o x", "permission", 1},
		{"not there", dir + "/none -o x", "no such file", 1},
		{"packed", packed + " -o x", "packed already", 1},
		{"setuid", "setuid -o x", "set-user-id", 1},
		{"tunlet", "/bin/true -o x --tunlet none", "no tunlet", 2},
		{"option", "/bin/true -o x --tunlet-option malloc.memory_byte=1G", "malloc", 2},
		{"mode", "/bin/true -o x --mode none", "unknown mode", 2},
		{"place", "/bin/true -o x --place none", "unknown place", 2},
		{"directory", "/bin/true -o " + dir, "not a regular file", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := shellIn(t, dir, "$ATTUNE_BINARY pack "+tt.arguments, "")
			if got.code != tt.code || !strings.Contains(got.stderr, tt.want) {
				t.Errorf("%+v; want code %d, %q", got, tt.code, tt.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
				t.Error("a file was made")
			}
		})
	}
}

// A file that many tunlets lead to is packed once; others of its name are not
// mistaken for it.
func TestPackedTunlets(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"many", "other/many", "attune-tunlet-own"} {
		path := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"a": "many", "b": "many", "c": "other/many"} {
		if err := os.Symlink(to, filepath.Join(dir, "attune-tunlet-"+link)); err != nil {
			t.Fatal(err)
		}
	}
	found := []tunlethost.Candidate{{Name: "bad", Path: dir + "/many", Err: errors.New("not trusted")}}
	for _, name := range []string{"a", "b", "c", "own"} {
		found = append(found, tunlethost.Candidate{Name: name, Path: filepath.Join(dir, "attune-tunlet-"+name)})
	}
	for _, name := range []string{"x", "y"} {
		found = append(found, tunlethost.Candidate{
			Name: name, Path: filepath.Join(dir, name+".tunlet.yaml"), Interpreter: filepath.Join(dir, "attune-tunlet-a"),
		})
	}
	want := []pack.PackedTunlet{
		{Name: "many", Path: dir + "/many"},
		{Name: "attune-tunlet-a", To: "many"},
		{Name: "attune-tunlet-b", To: "many"},
		{Name: "attune-tunlet-c", Path: dir + "/attune-tunlet-c"},
		{Name: "attune-tunlet-own", Path: dir + "/attune-tunlet-own"},
		{Name: "attune-tunlet-declarative", To: "many"},
		{Name: "x.tunlet.yaml", Path: dir + "/x.tunlet.yaml"},
		{Name: "y.tunlet.yaml", Path: dir + "/y.tunlet.yaml"},
	}
	if diff := cmp.Diff(want, pack.PackedTunlets(found), cmp.AllowUnexported(pack.PackedTunlet{})); diff != "" {
		t.Error(diff)
	}
}
