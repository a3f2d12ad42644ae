// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package taskaccount

import (
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

func mustAccounts(t testing.TB) *Accounts {
	t.Helper()
	a, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return a
}

// mustAccount runs a command to its end and returns its processes' accounts.
func mustAccount(t testing.TB, a *Accounts, command *exec.Cmd) (Totals, []Process) {
	t.Helper()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // for good
		err := a.StartFrom(unix.Gettid())
		if err == nil {
			err = command.Start()
		}
		started <- err
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	var totals Totals
	patience.Until(t, "everything is added up", func() bool {
		var err error
		if totals, err = a.Totals(); err != nil {
			t.Fatal(err)
		}
		return totals.Settled() && totals.Alive == 0
	})
	var list []Process
	if err := a.Read(func(p Process) { list = append(list, p) }); err != nil {
		t.Fatal(err)
	}
	return totals, list
}

// TestEqualsWait: of a tree whose processes are all waited for, wait4(2) tells the
// same.
func TestEqualsWait(t *testing.T) {
	a := mustAccounts(t)
	command := exec.Command("sh", "-c", `for i in 1 2 3 4 5 6 7 8 9 10; do
		/bin/true; (dd if=/dev/zero of=/dev/null bs=64k count=200 2>/dev/null) | cat; done`)
	totals, list := mustAccount(t, a, command)
	usage := command.ProcessState
	cpu := usage.UserTime() + usage.SystemTime()
	// wait4 has not what processes take after their parents have been told of their end.
	after := time.Duration(totals.Processes) * 500 * time.Microsecond
	if off := time.Duration(totals.Taken.Runtime) - cpu; off < -time.Millisecond || off > time.Millisecond+after {
		t.Errorf("CPU time %v, wait4 says %v", time.Duration(totals.Taken.Runtime), cpu)
	}
	// A shell, and of each round true, dd (in a subshell that may become it) and cat.
	if totals.Processes < 31 || totals.Processes > 41 || totals.Processes != uint64(len(list)) {
		t.Errorf("%d processes, %d of them with an account", totals.Processes, len(list))
	}
	var sum bpf.Taken
	for _, p := range list {
		sum.Runtime += p.Taken.Runtime
		sum.WrittenChars += p.Taken.WrittenChars
		if p.End < p.Start || p.Threads != 1 || !p.Status.Exited() {
			t.Errorf("%+v", p)
		}
	}
	if sum.Runtime != totals.Taken.Runtime || sum.WrittenChars != totals.Taken.WrittenChars {
		t.Errorf("the sum %+v is not the total %+v", sum, totals.Taken)
	}
	if want := uint64(10 * 200 * 65536); totals.Taken.WrittenChars < want || totals.Taken.WrittenChars > want+1000 {
		t.Errorf("%d bytes written, want %d", totals.Taken.WrittenChars, want)
	}
}

// TestFilesOfShell: what a shell reads and writes is told by file; the rest of the
// calls has package accountant's program.
func TestFilesOfShell(t *testing.T) {
	a := mustAccounts(t)
	f, err := a.NewFiles()
	compareShell(t, a, f, err)
}

// TestFilesWithoutCasts: the same on kernels before 6.2.
func TestFilesWithoutCasts(t *testing.T) {
	a := mustAccounts(t)
	f, err := a.newFiles(bpf.Casts{})
	compareShell(t, a, f, err)
}

func compareShell(t *testing.T, a *Accounts, f *Files, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	path := t.TempDir() + "/written"
	mustAccount(t, a, exec.Command("sh", "-c", `printf 12345 >"$0"; cat "$0" >/dev/null`, path))
	if err := f.Read(); err != nil {
		t.Fatal(err)
	}
	list, totals, err := f.List()
	if err != nil || totals.LostCalls != 0 || totals.Unseen != 0 {
		t.Fatalf("%+v, error %v", totals, err)
	}
	for _, file := range list {
		if file.Path == path {
			if file.Written != 5 || file.Read != 5 || file.Opens != 2 || file.ReadCalls != 2 {
				t.Errorf("%+v, want 5 bytes each way, 2 opens, 2 calls that read", file)
			}
			return
		}
	}
	t.Errorf("%s is not among %d files", path, len(list))
}
