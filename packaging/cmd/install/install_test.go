// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestPlace(t *testing.T) {
	const unit, other = "/usr/lib/systemd/system/attuned.service", "/etc/attune/attuned.yaml"
	for _, tt := range []struct{ path, prefix, want string }{
		{"/usr/bin/attune", "/usr", "/usr/bin/attune"},
		{"/usr/bin/attune", "/opt/attune", "/opt/attune/bin/attune"},
		{unit, "/usr/local", "/usr/local/lib/systemd/system/attuned.service"},
		{unit, "/opt/attune", "/etc/systemd/system/attuned.service"},
		{other, "/opt/attune", other},
		{"${SLURM_PLUGINS}/spank_attune.so", "/usr/local", "${SLURM_PLUGINS}/spank_attune.so"},
	} {
		if got := place(tt.path, tt.prefix); got != tt.want {
			t.Errorf("%s with prefix %s is at %s, want %s", tt.path, tt.prefix, got, tt.want)
		}
	}
}

// mustSource makes a folder of sources, goes there, and returns their list.
func mustSource(t *testing.T) (list string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"bin/attuned": "program", "attuned.service": "ExecStart=/usr/bin/attuned\n", "attuned.yaml": "# default\n",
		"man/a.1": "a", "man/b.1": "b", "tunlets/all": "all", "list.yaml": `
name: attuned
contents:
  - {src: bin/attuned, dst: /usr/bin/attuned}
  - {src: attuned.service, dst: /usr/lib/systemd/system/attuned.service}
  - {src: attuned.yaml, dst: /etc/attune/attuned.yaml, type: config|noreplace}
  - {src: man/*, dst: /usr/share/man/man1/}
  - {src: tunlets, dst: /usr/lib/attune/tunlets, type: tree}
  - {dst: /usr/lib/attune, type: dir}
`,
	} {
		mode := fs.FileMode(0o600)
		if strings.HasPrefix(name, "bin/") {
			mode = 0o700
		}
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(text), mode))
	}
	must(t, os.Symlink("all", "tunlets/malloc"))
	return "list.yaml"
}

// What is installed by hand works where it is, and goes again.
func TestInstallAndUninstall(t *testing.T) {
	list := mustSource(t)
	o := options{prefix: "/usr/local", destdir: t.TempDir()}
	defer unix.Umask(unix.Umask(0o077)) // as careful administrators have it
	for range 2 {                       // the second time as an upgrade
		must(t, run(o, []string{list}))
	}
	want := []string{
		"/etc/attune/attuned.yaml -rw-r--r--", "/usr/local/bin/attuned -rwxr-xr-x", "/usr/local/lib/attune/tunlets/all -rw-r--r--",
		"/usr/local/lib/attune/tunlets/malloc Lrwxrwxrwx", "/usr/local/lib/systemd/system/attuned.service -rw-r--r--",
		"/usr/local/share/man/man1/a.1 -rw-r--r--", "/usr/local/share/man/man1/b.1 -rw-r--r--",
	}
	if diff := cmp.Diff(want, below(t, o.destdir)); diff != "" {
		t.Errorf("installed (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(filepath.Join(o.destdir, "usr/local/lib/attune/tunlets")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("tunlets for others: %v, %v", info, err)
	}
	unit, err := os.ReadFile(filepath.Join(o.destdir, "/usr/local/lib/systemd/system/attuned.service"))
	if string(unit) != "ExecStart=/usr/local/bin/attuned\n" || err != nil {
		t.Errorf("the unit says %q, %v", unit, err)
	}
	o.uninstall = true
	must(t, run(o, []string{list}))
	if left := below(t, o.destdir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for _, dir := range []string{"/etc/attune", "/usr/local/lib/attune", "/usr/local/lib/systemd", "/usr/local/share/man/man1"} {
		if _, err := os.Stat(filepath.Join(o.destdir, dir)); !os.IsNotExist(err) {
			t.Errorf("left: %s, %v", dir, err)
		}
	}
}

// TestNoRoom: what cannot be written whole does not take the place of what is there.
func TestNoRoom(t *testing.T) {
	list := mustSource(t)
	o := options{prefix: "/usr", destdir: t.TempDir()}
	must(t, run(o, []string{list}))
	must(t, os.WriteFile("bin/attuned", []byte("the next program"), 0o700))
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &limit))
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 10, Max: limit.Max}))
	err := run(o, []string{list})
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
	if text, _ := os.ReadFile(filepath.Join(o.destdir, "usr/bin/attuned")); err == nil || string(text) != "program" {
		t.Errorf("%q, %v", text, err)
	}
	if left := strings.Join(below(t, o.destdir), "\n"); strings.Contains(left, ".new") {
		t.Errorf("left: %s", left)
	}
}

// A configuration that was changed stays, also when all else is removed; unless it is
// purged.
func TestChangedConfigurationStays(t *testing.T) {
	list := mustSource(t)
	o := options{prefix: "/usr", destdir: t.TempDir()}
	must(t, run(o, []string{list}))
	path := filepath.Join(o.destdir, "etc/attune/attuned.yaml")
	must(t, os.WriteFile(path, []byte("registry: tls://head:4222\n"), 0o644))
	must(t, run(o, []string{list}))
	o.uninstall = true
	must(t, run(o, []string{list}))
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "registry") {
		t.Errorf("%q, %v", text, err)
	}
	o.purge = true
	must(t, run(o, []string{list}))
	if left := below(t, o.destdir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestLists: what the packages' lists name of this repository is there, as are the
// scripts, and everything has one package.
func TestLists(t *testing.T) {
	t.Chdir("../../..")
	lists, err := filepath.Glob("packaging/nfpm/*.yaml")
	must(t, err)
	owner := map[string]string{}
	for _, list := range lists {
		p, err := read(list)
		must(t, err)
		if strings.TrimSuffix(filepath.Base(list), ".yaml") != p.Name {
			t.Errorf("%s is the list of %q", list, p.Name)
		}
		needed := []string{p.Scripts.PostInstall, p.Scripts.PreRemove, p.Scripts.PostRemove}
		for _, c := range p.Contents {
			if other, twice := owner[c.Destination]; twice && !strings.HasSuffix(c.Destination, "/") && c.Type != directory {
				t.Errorf("%s is in %s and in %s", c.Destination, other, p.Name)
			}
			owner[c.Destination] = p.Name
			needed = append(needed, c.Source)
		}
		for _, source := range needed {
			made := strings.HasPrefix(source, "bin/") || strings.HasPrefix(source, ".cache/") || strings.Contains(source, "/build/")
			if there, err := filepath.Glob(source); source != "" && !made && (err != nil || len(there) == 0) {
				t.Errorf("%s: there is no %s", list, source)
			}
		}
	}
	if len(lists) != 4 {
		t.Errorf("%v, want 4 lists", lists)
	}
}

// below lists the files below a directory with their modes.
func below(t *testing.T, dir string) (files []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		files = append(files, strings.TrimPrefix(path, dir)+" "+info.Mode().String())
		return err
	}))
	slices.Sort(files)
	return files
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
