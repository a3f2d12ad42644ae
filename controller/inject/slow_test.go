// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// slow is a program of one thread that copies what it is given. DMLib, when it attaches,
// asks the program's own getauxval whether it is privileged, which takes its time until a
// file is there.
const slow = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

unsigned long getauxval(unsigned long type) {
    if (type == AT_SECURE) {
        close(open("began", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        while (access("go-on", F_OK) != 0)
            usleep(1000);
    }
    return 0;
}

int main(void) {
    char text[64];
    for (ssize_t size; (size = read(0, text, sizeof(text))) > 0;)
        if (write(1, text, (size_t)size) != size)
            return 1;
    return 0;
}
`

// copier is a program that copies what it is given, in a directory of its own.
type copier struct {
	pid int
	dir string
	in  io.Writer
	out *bufio.Reader
}

func startCopier(t *testing.T, program string) *copier {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Dir = t.TempDir()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() }) // it may have ended
	c := &copier{cmd.Process.Pid, cmd.Dir, in, bufio.NewReader(out)}
	c.copies(t)
	return c
}

func (c *copier) copies(t *testing.T) {
	t.Helper()
	const text = "as it was\n"
	if _, err := io.WriteString(c.in, text); err != nil {
		t.Fatal(err)
	}
	if line, err := c.out.ReadString('\n'); line != text {
		t.Fatalf("copied %q, %v", line, err)
	}
}

// ownMemories counts the memories that this process has mapped.
func ownMemories(t *testing.T) int {
	t.Helper()
	maps := files.Read(t, "/proc/self/maps")
	return strings.Count(string(maps), "/memfd:"+shm.FileName)
}

// TestSlowLibraryOfOneThread: a call that comes to no end in time keeps no memory, and
// what it leaves in the process, which attaches after all, does not stand in the way of
// the next.
func TestSlowLibraryOfOneThread(t *testing.T) {
	b := newBench(t)
	program := targets.BuildText(t, "slow", slow, "-rdynamic")
	late := b.options
	before := ownMemories(t)
	var c *copier
	for late.timeout = 100 * time.Millisecond; ; late.timeout *= 2 {
		c = startCopier(t, program)
		if _, err := Inject(t.Context(), mustOpen(t, c.pid), late); !errors.Is(err, ErrTimeout) {
			t.Fatalf("got %v, want %v", err, ErrTimeout)
		}
		if _, err := os.Stat(filepath.Join(c.dir, "began")); err == nil {
			break // the memory was there to be shared
		}
	}
	if left := ownMemories(t) - before; left != 0 {
		t.Errorf("%d memories are left", left)
	}
	files.Write(t, filepath.Join(c.dir, "go-on"), "", 0o600)
	patience.Until(t, "DMLib in the program", func() bool {
		all, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", c.pid))
		return err == nil && strings.Contains(string(all), "/memfd:"+shm.FileName)
	})
	c.copies(t)
	free(t, b.inject(t, c.pid))
	c.copies(t)
}
