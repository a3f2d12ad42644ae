// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// userWith returns the present user with this environment alone.
func userWith(env map[string]string) User {
	return User{UID: os.Geteuid(), Env: func(k string) string { return env[k] }}
}

// shortTemp is a directory with a path short enough for sockets.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "r") //nolint:usetesting // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestCreateAndRemove(t *testing.T) {
	u := userWith(map[string]string{"XDG_RUNTIME_DIR": shortTemp(t)})
	dir, err := Create(u)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir.Path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v; want 0700", info.Mode(), err)
	}
	if got := dir.Socket("gate"); got != dir.Path+"/gate.sock" {
		t.Errorf("socket %s", got)
	}
	if err := dir.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir.Path); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
}

func TestStaleDirectoriesAreRemovedAndLivingOnesKept(t *testing.T) {
	u := userWith(map[string]string{"XDG_RUNTIME_DIR": shortTemp(t)})
	living, err := Create(u)
	if err != nil {
		t.Fatal(err)
	}
	defer living.Remove()
	dead, err := Create(u)
	if err != nil {
		t.Fatal(err)
	}
	dead.lock.Close() // as the kernel does when the process dies
	other := filepath.Join(filepath.Dir(dead.Path), "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	next, err := Create(u)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Remove()
	for path, want := range map[string]bool{living.Path: true, dead.Path: false, other: true, next.Path: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want there %v", path, err, want)
		}
	}
}

// TestJobsOfAnotherNode: on a file system that nodes share only the own dead jobs are removed.
func TestJobsOfAnotherNode(t *testing.T) {
	u := userWith(map[string]string{"XDG_RUNTIME_DIR": shortTemp(t)})
	base := filepath.Join(u.Env("XDG_RUNTIME_DIR"), "attune")
	for name, want := range map[string]bool{"job-0123456700000001": false, "job-89abcdef00000001": true} {
		path := filepath.Join(base, name)
		must(t, os.MkdirAll(path, 0o700))
		RemoveDeadJobs(u, Job{Path: filepath.Join(base, "job-0123456700000002")})
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want there %v", path, err, want)
		}
	}
}

func TestPlacesThatAreNotOurs(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(t *testing.T, base string) string // returns XDG_RUNTIME_DIR
	}{
		{"writable by others", func(t *testing.T, base string) string {
			must(t, os.Mkdir(base+"/attune", 0o700))
			must(t, os.Chmod(base+"/attune", 0o777))
			return base
		}},
		{"symbolic link", func(t *testing.T, base string) string {
			must(t, os.Mkdir(base+"/x", 0o700))
			must(t, os.Symlink(base+"/x", base+"/attune"))
			return base
		}},
		{"file", func(t *testing.T, base string) string {
			must(t, os.WriteFile(base+"/attune", nil, 0o600))
			return base
		}},
		{"too long", func(t *testing.T, base string) string {
			long := filepath.Join(base, strings.Repeat("x", maxPath))
			must(t, os.Mkdir(long, 0o700))
			return long
		}},
		{"relative", func(*testing.T, string) string { return "x" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base, fallback := shortTemp(t), shortTemp(t)
			runtime := tt.prepare(t, base)
			u := userWith(map[string]string{"XDG_RUNTIME_DIR": runtime, "TMPDIR": fallback})
			precious, held := prepareTraps(t, filepath.Join(runtime, "attune"))
			RemoveDeadJobs(u, Job{Path: jobPrefix})
			dir, err := Create(u)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Remove()
			if strings.HasPrefix(dir.Path, runtime) {
				t.Errorf("%s was used", dir.Path)
			}
			for _, path := range precious {
				if _, err := os.Stat(path); err != nil {
					t.Errorf("removed through a link: %v", err)
				}
			}
			if found := Running(u); slices.Contains(found, held) {
				t.Errorf("%s counts as the user's own run", held)
			}
		})
	}
}

// prepareTraps puts into a base what another user may have put there: runs and jobs that
// look dead and lead to the user's own files, and a run that lives. It returns those
// files and that run; nothing where the base is no directory.
func prepareTraps(t *testing.T, base string) (precious []string, held string) {
	t.Helper()
	if info, err := os.Stat(base); err != nil || !info.IsDir() {
		return nil, ""
	}
	for _, name := range []string{prefix, jobPrefix} {
		own, trap := shortTemp(t), filepath.Join(base, name+"dead")
		path := filepath.Join(own, "precious", "file")
		must(t, os.Mkdir(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, nil, 0o600))
		if name == prefix {
			must(t, os.WriteFile(filepath.Join(own, lockName), nil, 0o600))
			must(t, os.Symlink(own, trap))
		} else {
			must(t, os.Rename(own, trap))
			path = filepath.Join(trap, "precious", "file")
		}
		precious = append(precious, path)
	}
	held = filepath.Join(base, prefix+"held")
	must(t, os.Mkdir(held, 0o700))
	f, err := lock(filepath.Join(held, lockName))
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return precious, held
}

func TestRuntimeBases(t *testing.T) {
	env := map[string]string{"XDG_RUNTIME_DIR": "/run/user/7", "TMPDIR": "/scratch"}
	tests := []struct {
		name string
		uid  int
		want []string
	}{
		{"user", 7, []string{"/run/user/7/attune", "/scratch/attune-7", "/tmp/attune-7", "/dev/shm/attune-7"}},
		{"root", 0, []string{"/run/user/7/attune", "/run/attune", "/scratch/attune-0", "/tmp/attune-0", "/dev/shm/attune-0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := userWith(env)
			u.UID = tt.uid
			if diff := cmp.Diff(tt.want, u.runtimeBases()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLastingPlaces(t *testing.T) {
	env := map[string]string{"HOME": "/home/x", "XDG_CACHE_HOME": "/c", "XDG_STATE_HOME": "relative"}
	tests := []struct {
		name           string
		uid            int
		caches, states []string
	}{
		{"user", 7, []string{"/c/attune", "/home/x/.cache/attune"}, []string{"/home/x/.local/state/attune"}},
		{
			"root", 0, []string{"/var/cache/attune", "/c/attune", "/home/x/.cache/attune"},
			[]string{"/var/lib/attune", "/home/x/.local/state/attune"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := userWith(env)
			u.UID = tt.uid
			if diff := cmp.Diff(tt.caches, u.caches()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.states, u.states()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLibraryDirAvoidsWhatTheLoaderCannotRead(t *testing.T) {
	tests := []struct {
		name, path string
		ok         bool
	}{
		{"plain", "/home/x/.cache", true},
		{"space", "/home/x y", false},
		{"colon", "/home/x:y", false},
		{"dollar", "/home/$LIB", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := preloadable(tt.path); (err == nil) != tt.ok {
				t.Errorf("preloadable(%q) = %v", tt.path, err)
			}
		})
	}
}

func TestNowhereToLastMeansTheRun(t *testing.T) {
	u := userWith(nil)
	u.UID = 1 << 30 // nobody, and not root
	run := &Dir{Path: "/run-dir"}
	if got := u.LibraryDir(run); got != run.Path {
		t.Errorf("library in %s", got)
	}
	if got := u.StateDir(run); got != run.Path {
		t.Errorf("state in %s", got)
	}
	if got := u.DigestDir(); got != "" {
		t.Errorf("digests in %s", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Nothing is left of a run, nor of several at a time, none of which takes the directory
// above away from another.
func TestNothingIsLeft(t *testing.T) {
	base := shortTemp(t)
	u := userWith(map[string]string{"XDG_RUNTIME_DIR": base})
	var runs sync.WaitGroup
	for range 8 {
		runs.Go(func() {
			for range 200 {
				dir, err := Create(u)
				if err != nil {
					t.Error(err)
					return
				}
				if filepath.Dir(dir.Path) != filepath.Join(base, "attune") {
					t.Errorf("made at %s", dir.Path)
				}
				if err := dir.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	runs.Wait()
	if left, err := os.ReadDir(base); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
