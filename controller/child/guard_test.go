// SPDX-License-Identifier: Apache-2.0

package child

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/openfiles"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// A guard takes attuned to be there for as long as it is, whatever Go's collector does
// with files that nobody can reach.
func TestGuardOutlastsCollections(t *testing.T) {
	dir := t.TempDir()
	pool := mustPool(t, "serve")
	if err := pool.Guard(patience.Context(t), dir, clock.SinceBoot()+time.Hour); err != nil {
		t.Fatal(err)
	}
	guard := mustFindGuard(t, dir)
	pipe, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", pool.guarding[0].(*os.File).Fd()))
	if err != nil {
		t.Fatal(err)
	}
	openfiles.List(t) // what starts the guard may still have been at work
	if !slices.Contains(openfiles.List(t), pipe) {
		t.Errorf("%s, by which the guard knows that attuned is there, is closed", pipe)
	}
	for _, file := range pool.guarding {
		_ = file.Close() // as when attuned is gone
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(guard, &status, 0, nil); err != nil || status.ExitStatus() != 0 {
		t.Errorf("the guard has ended with %v, %v", status, err)
	}
}

// mustFindGuard returns the pid of the guard of a directory.
func mustFindGuard(t *testing.T, dir string) int {
	t.Helper()
	found := executing(t, "\x00"+GuardWord+"\x00"+dir)
	if len(found) == 0 {
		t.Fatal("there is no guard")
	}
	return found[0]
}

// executing lists the children of this process with some arguments. Those of others are not
// read: another test's process may not answer.
func executing(t *testing.T, arguments string) (found []int) {
	t.Helper()
	pids, err := procid.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if stat, err := procid.ReadStat(pid); err != nil || stat.ParentPID != os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(procid.Path(pid, "cmdline")) // it may have ended
		if bytes.Contains(line, []byte(arguments)) {
			found = append(found, pid)
		}
	}
	return found
}
