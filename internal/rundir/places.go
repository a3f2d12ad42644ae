// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// User is whose directories are meant.
type User struct {
	// UID is the effective user id.
	UID int
	// Env looks an environment variable up; os.Getenv.
	Env func(string) string
}

// Current is the user of this process.
func Current() User { return User{UID: os.Geteuid(), Env: os.Getenv} }

// runtimeBases lists where run directories may be, best first.
func (u User) runtimeBases() []string {
	var list []string
	if dir := u.Env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		list = append(list, filepath.Join(dir, "attune"))
	}
	if u.UID == 0 {
		list = append(list, "/run/attune")
	}
	name := fmt.Sprintf("attune-%d", u.UID)
	if dir := u.Env("TMPDIR"); filepath.IsAbs(dir) {
		list = append(list, filepath.Join(dir, name))
	}
	return append(list, "/tmp/"+name, "/dev/shm/"+name)
}

// ownBases lists those of them that are there and the user's own: what is in another one
// was put there by somebody else.
func (u User) ownBases() []string {
	return slices.DeleteFunc(u.runtimeBases(), func(base string) bool { return u.checkOwn(base) != nil })
}

// caches lists where the installed library may be, best first.
func (u User) caches() []string {
	return u.lasting("XDG_CACHE_HOME", ".cache", "/var/cache/attune")
}

// states lists where undo journals may be, best first.
func (u User) states() []string {
	return u.lasting("XDG_STATE_HOME", ".local/state", "/var/lib/attune")
}

func (u User) lasting(variable, below, root string) []string {
	var list []string
	if u.UID == 0 {
		list = append(list, root)
	}
	if dir := u.Env(variable); filepath.IsAbs(dir) {
		list = append(list, filepath.Join(dir, "attune"))
	}
	if home := u.Env("HOME"); filepath.IsAbs(home) {
		list = append(list, filepath.Join(home, below, "attune"))
	}
	return list
}

// LibraryDir returns a directory for the library that is preloaded into
// programs, made if need be: one that outlives the run, else run itself. The
// path can stand in LD_PRELOAD, and files in it can be mapped for execution.
func (u User) LibraryDir(run *Dir) string {
	for _, dir := range u.caches() {
		if preloadable(dir) == nil && u.own(dir, 0o755) == nil && executable(dir) == nil {
			return dir
		}
	}
	return run.Path
}

// StateDir returns a directory for undo journals, made if need be: one that
// outlives the run, else run itself, and then a crash cannot be made good.
func (u User) StateDir(run *Dir) string {
	if dir, err := u.LastingStateDir(); err == nil {
		return dir
	}
	return run.Path
}

// DigestDir returns a directory for the checksums of programs, made if need be;
// empty if there is none that outlives the run.
func (u User) DigestDir() string { return u.cacheDir("digests") }

// DescriptionDir returns a directory for what tunlets say of themselves, made if
// need be; empty if there is none that outlives the run.
func (u User) DescriptionDir() string { return u.cacheDir("tunlets") }

// VariablesDir returns a directory for what was found out about variables
// without symbol, made if need be; empty if there is none that outlives the
// run.
func (u User) VariablesDir() string { return u.cacheDir("variables") }

func (u User) cacheDir(name string) string {
	for _, cache := range u.caches() {
		dir := filepath.Join(cache, name)
		if u.own(cache, 0o755) == nil && u.own(dir, 0o700) == nil && unix.Access(dir, unix.W_OK) == nil {
			return dir
		}
	}
	return ""
}

// own makes a directory, or accepts one that belongs to the user and that
// nobody else can write to: never one that somebody prepared in /tmp.
func (u User) own(dir string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, mode); err != nil && !os.IsExist(err) {
		return err
	}
	return u.checkOwn(dir)
}

// checkOwn accepts a directory that is there as own does.
func (u User) checkOwn(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s is not a directory", dir)
	case int(st.Uid) != u.UID:
		return fmt.Errorf("%s belongs to user %d", dir, st.Uid)
	case st.Mode&0o022 != 0:
		return fmt.Errorf("%s may be written by others", dir)
	}
	return nil
}

// preloadable tells whether the dynamic loader takes the path in LD_PRELOAD:
// it splits at spaces and colons and expands dollars.
func preloadable(dir string) error {
	if strings.ContainsAny(dir, " :$\t\n") {
		return fmt.Errorf("%q cannot stand in LD_PRELOAD", dir)
	}
	return nil
}

// executable tells whether files in dir can be mapped for execution.
func executable(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if fs.Flags&unix.ST_NOEXEC != 0 {
		return fmt.Errorf("%s is mounted noexec", dir)
	}
	return unix.Access(dir, unix.W_OK)
}
