// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package hidden

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/confine"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

const alice = 5001

// telling is a library that makes a file for each process that has loaded it.
const telling = `
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static long quick = 7;
long value(void) { return quick; }
__attribute__((constructor)) static void begin(void) {
	char name[4096];
	snprintf(name, sizeof name, "%s/loaded-%d", TOLD, getpid());
	close(open(name, O_WRONLY | O_CREAT, 0666));
}
`

// TestUsersLibraryIsNotExecuted: alice has a library with a constructor, and asks
// for a change that needs a variable without symbol in it. As root's service would
// load the library, she would have a process in none of her jobs, with none of
// their limits.
func TestUsersLibraryIsNotExecuted(t *testing.T) {
	dir := asuser.Folder(t)
	built := targets.BuildText(t, "telling", telling, "-shared", "-fPIC", fmt.Sprintf("-DTOLD=%q", dir))
	path, helper := filepath.Join(dir, "libtelling.so"), filepath.Join(dir, "helper")
	content := mustCopy(t, targets.Build(t, "../../../dmlib/probe/load.c", "-D_GNU_SOURCE"), helper)
	mustCopy(t, built, path)
	must(t, os.Chown(path, alice, alice))
	must(t, os.Chown(dir, alice, alice))
	must(t, os.Chmod(dir, 0o777)) // whoever executes it can tell
	pid, image := mustLoad(t, helper, path)
	p := &Prober{Helper: content}
	if at, err := p.Find(t.Context(), pid, image, quick()); !errors.Is(err, ErrNotRoots) {
		t.Errorf("found %#x, %v, want %v", at, err, ErrNotRoots)
	}
	files, err := filepath.Glob(filepath.Join(dir, "loaded-*"))
	must(t, err)
	if want := []string{filepath.Join(dir, fmt.Sprintf("loaded-%d", pid))}; !slices.Equal(files, want) {
		t.Errorf("it was executed: %q, want %q", files, want)
	}
	// Hers is everything in a directory of hers, whoever owns the file.
	must(t, os.Chown(path, 0, 0))
	if at, err := p.Find(t.Context(), pid, image, quick()); !errors.Is(err, ErrNotRoots) {
		t.Errorf("root's file in her directory: found %#x, %v, want %v", at, err, ErrNotRoots)
	}
}

// TestUsersProcessIsNobodys: what is executed of root's for a process of alice's
// does not run as her: she could trace it.
func TestUsersProcessIsNobodys(t *testing.T) {
	helper := filepath.Join(asuser.Folder(t), "helper")
	content := mustCopy(t, targets.Build(t, "../../../dmlib/probe/load.c", "-D_GNU_SOURCE"), helper)
	pid, image := mustLoad(t, helper, "libc.so.6")
	p := &Prober{Helper: content}
	if _, err := p.Find(t.Context(), pid, image, MallocTrimThreshold()); err != nil {
		t.Error(err)
	}
	if o, err := ownerOf(pid); err != nil || o.uid != confine.Nobody || o.gid != confine.Nobody {
		t.Errorf("it is executed as %+v, %v, want as user %d", o, err, confine.Nobody)
	}
}

// mustLoad has alice load a library.
func mustLoad(t *testing.T, helper, library string) (pid int, image objfile.Image) {
	t.Helper()
	command := exec.Command(helper, library)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: alice, Gid: alice}}
	pid = targets.StartCommand(t, command).PID
	images, err := objfile.Images(pid)
	must(t, err)
	for _, i := range images {
		if strings.HasSuffix(i.Path, "/"+filepath.Base(library)) {
			return pid, i
		}
	}
	t.Fatalf("%s is not loaded: %v", library, images)
	return 0, image
}

// mustCopy copies a program to where everybody can execute it.
func mustCopy(t *testing.T, from, to string) []byte {
	t.Helper()
	content, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, content, 0o755))
	return content
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
