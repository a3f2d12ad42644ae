// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/patience"
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

// Whatever a library starts and holds on to, looking into it comes to an end.
func TestClingingLibrary(t *testing.T) {
	p, pid, image := mustStart(t, "clinging", clinging, "PLAIN=1") // which makes it do nothing there
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
