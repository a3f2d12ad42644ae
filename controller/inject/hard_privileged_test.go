// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package inject

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestOtherUser: the library and the gate lie where that user cannot look.
func TestOtherUser(t *testing.T) {
	const nobody = 65534
	b := newBench(t)
	if err := os.Chmod(filepath.Dir(b.options.Library), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(forOthers(t, targets.Program(t, "churn")))
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	b.fromMemory(t, targets.StartCommand(t, cmd))
}

// forOthers copies a program to where every user can run it.
func forOthers(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "attune-test-") //nolint:usetesting // its parents are closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	content, err := os.ReadFile(program)
	copied := filepath.Join(dir, filepath.Base(program))
	if err := errors.Join(err, os.Chmod(dir, 0o755), targets.WriteProgram(copied, content)); err != nil {
		t.Fatal(err)
	}
	return copied
}

// fromMemory enters a program that cannot open the library, twice.
func (b *bench) fromMemory(t *testing.T, h *targets.Target) {
	t.Helper()
	for _, loaded := range []bool{true, false} {
		result := b.inject(t, h.PID)
		if result.Loaded != loaded || len(result.Slots) == 0 {
			t.Errorf("entered with %+v, want loaded %v", result, loaded)
		}
		free(t, result)
		h.Right(t)
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", h.PID))
	if err != nil || !strings.Contains(string(maps), "/memfd:/libattune-dm.so") {
		t.Errorf("the library did not come from memory (%v):\n%s", err, maps)
	}
	h.Finish(t)
}

// TestNamespaces: the program has other pids, and mounts that hide the library.
func TestNamespaces(t *testing.T) {
	b := newBench(t)
	hidden := filepath.Dir(b.options.Library)
	script := fmt.Sprintf("mount --make-rprivate / && mount -t proc proc /proc && mount -t tmpfs none %s && exec %s",
		hidden, targets.Program(t, "churn"))
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	h := targets.StartCommand(t, cmd)
	b.fromMemory(t, h)
}

// TestNoProc: there is no way for the library.
func TestNoProc(t *testing.T) {
	b := newBench(t)
	hidden := filepath.Dir(b.options.Library)
	script := fmt.Sprintf("mount --make-rprivate / && mount -t tmpfs none %s && mount -t tmpfs none /proc && exec %s",
		hidden, targets.Program(t, "plain"))
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	h := targets.StartCommand(t, cmd)
	if _, err := Inject(t.Context(), mustOpen(t, h.PID), b.options); !errors.Is(err, ErrUnsuited) || !strings.Contains(err.Error(), "/proc") {
		t.Errorf("error %v, want a refusal for /proc", err)
	}
	h.Right(t)
	h.Finish(t)
}

// TestSeccomp: a filter that kills for what we need is found out before, one
// that does not is no obstacle.
func TestSeccomp(t *testing.T) {
	program := targets.Program(t, "forbids")
	for _, row := range []struct {
		number  int
		when    string // "later": once the program has its threads
		helped  bool   // a thread may be started
		refused string
	}{
		{unix.SYS_REBOOT, "", true, ""},
		{unix.SYS_MEMFD_CREATE, "", false, "memfd_create"},
		{unix.SYS_TGKILL, "", false, "tgkill"},
		{unix.SYS_PROCESS_VM_READV, "", false, "process_vm_readv"},
		{unix.SYS_CLOCK_GETTIME, "", false, "clock_gettime"},
		{unix.SYS_CLONE, "later", false, ""},
		{unix.SYS_CLONE3, "later", false, ""},
		{unix.SYS_RSEQ, "later", false, ""},
	} {
		t.Run(strconv.Itoa(row.number), func(t *testing.T) {
			b := newBench(t)
			h := targets.StartCommand(t, exec.Command(program, strconv.Itoa(row.number), row.when))
			h.Right(t) // the filter is there
			result, err := Inject(t.Context(), mustOpen(t, h.PID), b.options)
			switch {
			case row.refused == "" && err != nil:
				t.Error(err)
			case row.refused == "":
				free(t, result)
				if helped := result.Helper != 0; helped != row.helped {
					t.Errorf("a thread was started: %v, want %v", helped, row.helped)
				}
			case !errors.Is(err, ErrUnsuited) || !strings.Contains(err.Error(), row.refused):
				t.Errorf("error %v, want a refusal that names %s", err, row.refused)
			}
			h.Right(t)
			h.Finish(t)
		})
	}
}

// TestSeccompOfSomeThreads: what one may do another may not.
func TestSeccompOfSomeThreads(t *testing.T) {
	b := newBench(t)
	h := targets.StartProgram(t, "forbids", strconv.Itoa(unix.SYS_PROCESS_VM_READV), "one")
	if _, err := Inject(t.Context(), mustOpen(t, h.PID), b.options); !errors.Is(err, ErrUnsuited) || !strings.Contains(err.Error(), "different") {
		t.Errorf("error %v, want a refusal for different filters", err)
	}
	h.Right(t)
	h.Finish(t)
}

// TestUpgradedLibrary: a library has another file by now, and the slots of the
// one that is mapped are found all the same.
func TestUpgradedLibrary(t *testing.T) {
	b := newBench(t)
	library := buildPart(t)
	dir := filepath.Dir(library)
	program := targets.Program(t, "plain", "-Wl,--no-as-needed", library, "-Wl,-rpath,"+dir)
	h := targets.StartCommand(t, exec.Command(program))
	image := imageOf(t, h.PID, "libpart.so")
	files.Write(t, library+".new", "another", 0o755)
	if err := os.Rename(library+".new", library); err != nil {
		t.Fatal(err)
	}
	result := b.inject(t, h.PID)
	defer free(t, result)
	hooked := 0
	for _, s := range result.Slots {
		if s.Address >= image.Start && s.Address < image.End {
			hooked++
		}
	}
	if hooked != 1 {
		t.Errorf("%d slots of the library lead to hooks, want its malloc", hooked)
	}
	h.Right(t)
	h.Finish(t)
}
