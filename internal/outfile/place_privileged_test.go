// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package outfile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestPlaceThatIsMounted: a file that is a mount of its own, as a container may have it, cannot be replaced, and gets
// the document all the same.
func TestPlaceThatIsMounted(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, name := range []string{path, filepath.Join(dir, "outside")} {
		files.Write(t, name, before, 0o600)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends, and the mount with it
		done <- errors.Join(unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount(filepath.Join(dir, "outside"), path, "", unix.MS_BIND, ""), Replace(path, writeDocument))
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "outside")); err != nil || string(got) != document {
		t.Errorf("%q, %v", got, err)
	}
	onlyHas(t, dir, "file", "outside")
}

// TestPlaceOfOthers: root replaces a user's file by one of the user's.
func TestPlaceOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := errors.Join(os.WriteFile(path, []byte(before), 0o600), os.Chown(path, 61001, 61002)); err != nil {
		t.Fatal(err)
	}
	if err := placed(t, path, writeDocument); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Uid != 61001 || st.Gid != 61002 {
		t.Errorf("owner %d, group %d, %v", st.Uid, st.Gid, err)
	}
}
