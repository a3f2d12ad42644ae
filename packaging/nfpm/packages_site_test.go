// SPDX-License-Identifier: Apache-2.0

//go:build site && full

package nfpm

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// older is a version before that of the sources, with what is in it the same.
const older = "0~20200101000000.00000000"

// build builds packages of the formats into a directory: those of the sources' version,
// or of another.
func build(t *testing.T, version, formats string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "packages")
	must(t, "env", "VERSION="+version, "DIST="+dir, "FORMATS="+formats, repository+"/scripts/packages", "attune", "attuned", "attune-analyzer", "attune-slurm")
	return dir
}

// TestPackagesOfDebian installs the packages as an administrator would: they are used,
// upgraded while a job runs, and removed; the job goes on, and nothing is left.
func TestPackagesOfDebian(t *testing.T) {
	must(t, "make", "-s", "-C", repository, "stage", "slurm")
	version := must(t, repository+"/scripts/version")
	s := boot(t)
	s.must(t, "useradd", "--create-home", "alice")
	// What the tools of users keep beside their files is there before.
	s.must(t, "useradd", "--system", "nobody2")
	s.must(t, "userdel", "nobody2")
	before := s.files(t)

	s.bring(t, "older", build(t, older, "deb"))
	s.bring(t, "newer", build(t, version, "deb"))
	install := func(which string) { s.must(t, "sh", "-c", "dpkg --install /packages/"+which+"/*.deb") }
	install("older")
	for _, unit := range []string{"attuned", "attune-analyzer", "attune-ca"} {
		if state, _ := s.try(t, "systemctl", "is-enabled", unit); state != "disabled" {
			t.Errorf("%s is %s after the installation", unit, state)
		}
	}
	s.must(t, "attuned", "--check-config")
	said := s.must(t, "su", "alice", "-c", "attune version && attune run -- python3 -c 'print(6 * 7)'")
	for _, want := range []string{"attune " + version + " ", "42\n", "attune: python3 ran"} {
		if !strings.Contains(said, want) {
			t.Errorf("attune run says %q, want %q", said, want)
		}
	}

	s.configure(t)
	s.must(t, "systemctl", "enable", "--now", "attune-analyzer", "attuned")
	job := s.start(t)
	patience.Until(t, "a change", func() bool { return job.changed(t) })

	install("newer")
	log := s.log(t)
	if strings.Count(log, "Started attuned.service") != 2 {
		t.Errorf("attuned was not started anew:\n%s", log)
	}
	patience.Until(t, "a change after the upgrade", func() bool {
		_, since, _ := strings.Cut(s.log(t), "Stopped attuned.service")
		// Again, or still, if it had been proven before.
		return (strings.Contains(since, "OUTCOME_APPLIED") || strings.Contains(since, "change taken over")) && job.changed(t)
	})
	job.goesOn(t)

	s.must(t, "dpkg", "--remove", "attune", "attuned", "attune-analyzer", "attune-slurm")
	job.goesOn(t)
	if job.changed(t) {
		t.Errorf("the change was not undone:\n%s", s.log(t))
	}
	for _, kept := range []string{"/etc/attune/attuned.yaml", "/etc/attune/policy.yaml", "/var/lib/attune/audit.jsonl"} {
		s.must(t, "test", "-e", kept)
	}
	s.purgesItsOwn(t)
	s.must(t, "dpkg", "--purge", "attune", "attuned", "attune-analyzer", "attune-slurm")
	job.goesOn(t)
	s.hasOnly(t, before)
	s.byHand(t)
	s.hasOnly(t, before)
}

// purgesItsOwn: the purge of attuned leaves what attune undo needs, that of attune what
// attuned has noted.
func (s *system) purgesItsOwn(t *testing.T) {
	t.Helper()
	const changes, audit = "/var/lib/attune/node1.1.kept", "/var/lib/attune/audit.jsonl"
	s.must(t, "sh", "-c", "dpkg --install /packages/newer/attune_*.deb")
	s.must(t, "touch", changes)
	s.must(t, "dpkg", "--purge", "attuned")
	s.must(t, "test", "-e", changes, "-a", "!", "-e", audit)
	s.must(t, "sh", "-c", "dpkg --install /packages/newer/attuned_*.deb")
	s.must(t, "touch", audit)
	s.must(t, "dpkg", "--remove", "attuned", "attune")
	s.must(t, "dpkg", "--purge", "attune")
	s.must(t, "test", "-e", audit, "-a", "!", "-e", changes)
}

// byHand installs with make, for this system, starts a service, and removes all.
func (s *system) byHand(t *testing.T) {
	t.Helper()
	s.bring(t, "maintainer", repository+"/packaging/maintainer")
	script := func(name string, action ...string) {
		s.must(t, append([]string{"sh", "/packages/maintainer/" + name}, action...)...)
	}
	must(t, "make", "-s", "-C", repository, "install", "DESTDIR="+s.root)
	script("attuned.postinstall", "configure")
	script("attune-analyzer.postinstall", "configure")
	s.must(t, "systemctl", "start", "attuned", "attune-analyzer")
	if got := s.must(t, "sh", "-c", "readlink /proc/$(systemctl show --property MainPID --value attuned)/exe"); got != "/usr/local/bin/attuned" {
		t.Errorf("%s runs, want what was installed", got)
	}
	if got := s.must(t, "attune", "tunlet", "list"); !strings.Contains(got, "/usr/local/lib/attune/tunlets/") {
		t.Errorf("tunlets: %s", got)
	}
	packages := []string{"attuned", "attune-analyzer"}
	for _, name := range packages {
		script(name+".preremove", "remove")
	}
	must(t, "make", "-s", "-C", repository, "uninstall", "PURGE=yes", "DESTDIR="+s.root)
	for _, name := range append(packages, "attune") {
		script(name+".postremove", "remove")
		script(name+".postremove", "purge")
	}
}

// hasOnly checks that nothing is in the system that was not before, and all else is.
func (s *system) hasOnly(t *testing.T, before map[string]string) {
	t.Helper()
	if diff := cmp.Diff(before, s.files(t)); diff != "" {
		t.Errorf("is left (-before +after):\n%s", diff)
	}
	if left := s.must(t, "find", "/run", "-name", "*attune*"); left != "" {
		t.Errorf("is left in /run: %s", left)
	}
}

// TestPackagesOfRPM installs the packages in a directory, without their scripts: there
// is nothing of an RPM distribution that they could run.
func TestPackagesOfRPM(t *testing.T) {
	must(t, "make", "-s", "-C", repository, "stage", "slurm")
	version := must(t, repository+"/scripts/version")
	root := t.TempDir()
	old, dir := rpms(t, build(t, older, "rpm")), build(t, version, "deb rpm")
	rpm := func(args ...string) string {
		return must(t, "rpm", append([]string{"--root", root, "--dbpath", "/rpmdb"}, args...)...)
	}
	for _, file := range rpms(t, dir) {
		if said := must(t, "rpm", "--checksig", "--nosignature", file); !strings.HasSuffix(said, "digests OK") {
			t.Error(said)
		}
	}
	rpm("--initdb")
	rpm(append([]string{"--install", "--nodeps", "--noscripts"}, old...)...)
	rpm(append([]string{"--upgrade", "--nodeps", "--noscripts"}, rpms(t, dir)...)...) // which wants a newer one
	packages := []string{"attune", "attune-analyzer", "attune-slurm", "attuned"}
	for _, name := range packages {
		if got := rpm("--query", "--queryformat", "%{version}", name); got != version {
			t.Errorf("%s is of version %s, want %s", name, got, version)
		}
	}
	rpm("--verify", "--nodeps", "--noscripts", "--nouser", "--nogroup", "attune", "attuned")
	got := strings.Fields(rpm(append([]string{"--query", "--list", "--noartifact"}, packages...)...))
	if diff := cmp.Diff(ofDebian(t, dir), onlyFiles(root, got)); diff != "" {
		t.Errorf("other files than Debian's (-deb +rpm):\n%s", diff)
	}
	rpm(append([]string{"--erase", "--noscripts"}, packages...)...)
	if left := must(t, "find", root, "-name", "*attune*"); left != "" {
		t.Errorf("left: %s", left)
	}
}

func rpms(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.rpm"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

// ofDebian lists the files of Debian's packages as those of RPM name them.
func ofDebian(t *testing.T, dir string) []string {
	t.Helper()
	debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, deb := range debs {
		for line := range strings.Lines(must(t, "dpkg-deb", "--contents", deb)) {
			fields := strings.Fields(line)
			if strings.HasSuffix(fields[5], "/") {
				continue
			}
			name := strings.TrimPrefix(fields[5], ".")
			name = strings.Replace(name, "/zsh/vendor-completions/", "/zsh/site-functions/", 1)
			names[strings.Replace(name, "/lib/x86_64-linux-gnu/slurm-wlm/", "/lib64/slurm/", 1)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// onlyFiles leaves directories out.
func onlyFiles(root string, names []string) []string {
	names = slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Lstat(filepath.Join(root, name))
		return err == nil && info.IsDir()
	})
	slices.Sort(names)
	return slices.Compact(names)
}
