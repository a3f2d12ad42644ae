// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// clinging is a library that leaves a process behind wherever the helper loads it,
// which has the pipes of the helper.
const clinging = `
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static long quick = 7;
long value(void) { return quick; }
__attribute__((constructor)) static void begin(void) {
	if (getenv("PLAIN"))
		return;
	if (fork() == 0) {
		for (int i = 0; i < 100; i++)
			fprintf(stderr, "%1000d\n", i);
		setsid();
		sleep(600);
		_exit(0);
	}
}
`

// mustCling starts a process that has loaded the library, which does nothing there.
func mustCling(t *testing.T) (p *Prober, pid int, image objfile.Image) {
	t.Helper()
	helper := targets.Build(t, "../../../dmlib/probe/load.c", "-D_GNU_SOURCE")
	path := targets.BuildText(t, "clinging", clinging, "-shared", "-fPIC")
	content, err := os.ReadFile(helper)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(helper, path)
	command.Env = []string{"PLAIN=1"}
	pid = targets.StartCommand(t, command).PID
	images, err := objfile.Images(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range images {
		if i.Path == path {
			return &Prober{Helper: content}, pid, i
		}
	}
	t.Fatalf("%s is not loaded: %v", path, images)
	return nil, 0, image
}

// Whatever a library starts and holds on to, looking into it comes to an end.
func TestClingingLibrary(t *testing.T) {
	p, pid, image := mustCling(t)
	done := make(chan error, 1)
	go func() {
		_, err := p.Find(t.Context(), pid, image, Variable{Name: "quick", Size: 8, Markers: wide(), Environment: "NONE"})
		done <- err
	}()
	t.Cleanup(func() { endLeft(t, image.Path) })
	select {
	case err := <-done:
		if err == nil {
			t.Error("it was found")
		}
	case <-time.After(patience.Limit):
		t.Error("the prober hangs")
	}
}

// endLeft ends the processes that have a file mapped: what the library has left.
func endLeft(t *testing.T, file string) {
	t.Helper()
	maps, err := filepath.Glob("/proc/[0-9]*/maps")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range maps {
		content, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(content), file) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
