// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/confine"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// elsewhere are calls of Go's runtime that are none of Linux's servers.
var elsewhere = map[string]string{
	"socket": "the log of Android", "connect": "the log of Android",
}

// TestRuntimeCalls: whatever system call Go's runtime has, of the version that builds
// this, a helper may make, at least as the runtime makes it.
func TestRuntimeCalls(t *testing.T) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("Go's sources are not here: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "src")
	found := make(map[string]uint32)
	for file, define := range map[string]string{
		"runtime/sys_linux_amd64.s":                          `(?m)^#define SYS_(\w+)\s+(\d+)$`,
		"internal/runtime/syscall/linux/defs_linux_amd64.go": `(?m)^\tSYS_(\w+)\s+= (\d+)$`,
	} {
		text := files.Read(t, filepath.Join(root, file))
		calls := regexp.MustCompile(define).FindAllSubmatch(text, -1)
		if len(calls) < 10 {
			t.Errorf("%s has %d calls", file, len(calls))
		}
		for _, call := range calls {
			number, err := strconv.ParseUint(string(call[2]), 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			found[string(call[1])] = uint32(number)
		}
	}
	f := filter(os.Getpid())
	for name, number := range found {
		may := false
		for _, c := range f.Calls[number] {
			may = may || c.Verdict == confine.Allow
		}
		if why := elsewhere[name]; !may && why == "" {
			t.Errorf("a helper may not make %s (%d), which Go's runtime has", name, number)
		}
	}
}

// attempt makes a system call in a helper, of a number with some arguments, and tells its error.
func attempt() Operation[[]uintptr, unix.Errno] {
	return NewOperation("attempt", func(_ context.Context, call []uintptr) (unix.Errno, error) {
		call = append(call, make([]uintptr, 6)...)
		_, _, errno := unix.Syscall6(call[0], call[1], call[2], call[3], call[4], call[5], call[6])
		return errno, nil
	})
}

// write opens a file for writing in a helper.
func write() Operation[string, bool] {
	return NewOperation("write", func(_ context.Context, path string) (bool, error) {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_ = file.Close() // it may be open, which is what is asked
		}
		return errors.Is(err, unix.EPERM), nil
	})
}

// TestTakenOver: whoever has a helper do what it likes gets nothing done by the kernel that
// reading does not take, and where nobody else would ask for it has the helper end.
func TestTakenOver(t *testing.T) {
	p, _ := mustPool(t, Options{Patience: patience.Limit, Pause: time.Nanosecond})
	for name, tt := range map[string]struct {
		call []uintptr
		want unix.Errno // 0: the helper ends
	}{
		"execute":          {call: []uintptr{unix.SYS_EXECVE}},
		"fork":             {call: []uintptr{unix.SYS_CLONE, uintptr(unix.SIGCHLD)}},
		"trace":            {call: []uintptr{unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1}},
		"load BPF":         {call: []uintptr{unix.SYS_BPF}},
		"connect":          {call: []uintptr{unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM}},
		"mount":            {call: []uintptr{unix.SYS_MOUNT}},
		"enter namespaces": {call: []uintptr{unix.SYS_SETNS}},
		"make namespaces":  {call: []uintptr{unix.SYS_UNSHARE, unix.CLONE_NEWUSER}},
		"use keys":         {call: []uintptr{unix.SYS_KEYCTL}},
		"load modules":     {call: []uintptr{unix.SYS_INIT_MODULE}},
		"load kernels":     {call: []uintptr{unix.SYS_KEXEC_LOAD}},
		"become another":   {call: []uintptr{unix.SYS_SETUID, 0}},
		"use io_uring":     {call: []uintptr{unix.SYS_IO_URING_SETUP, 1}},
		"make code":        {[]uintptr{unix.SYS_MMAP, 0, 4096, unix.PROT_READ | unix.PROT_EXEC, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, unix.EPERM},
		"signal others":    {[]uintptr{unix.SYS_KILL, uintptr(os.Getpid())}, unix.EPERM},
		"remove files":     {[]uintptr{unix.SYS_UNLINKAT}, unix.ENOSYS},
		"be dumpable":      {[]uintptr{unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1}, unix.EPERM},
		"openat2":          {[]uintptr{unix.SYS_OPENAT2}, unix.ENOSYS},
		"a new call":       {[]uintptr{1000}, unix.ENOSYS},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := attempt().Ask(t.Context(), p, harmless, tt.call)
			if ended := errors.Is(err, ErrRefused); ended != (tt.want == 0) || got != tt.want {
				t.Errorf("%v, %v, want %v", got, err, tt.want)
			}
			if tt.want == 0 {
				patience.Receive(t, "end of the pause", p.Lifted)
			}
		})
	}
	if refused, err := write().Ask(t.Context(), p, harmless, os.DevNull); err != nil || !refused {
		t.Errorf("opened for writing: %v", err)
	}
}
