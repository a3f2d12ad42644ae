// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// replacing kills the helper that measures directories, and tells a command, by a file, when there is another.
type replacing struct {
	first int
	told  string
}

func (r *replacing) watch(row account.Row) {
	pid := livingHelper()
	switch {
	case pid == 0 || row.Disk == nil:
	case r.first == 0:
		r.first = pid
		_ = unix.Kill(pid, unix.SIGKILL)
	case pid != r.first:
		_ = os.WriteFile(r.told, nil, 0o600)
	}
}

// livingHelper is the process id of the helper; 0: there is none.
func livingHelper() int {
	for _, pid := range childrenOf(os.Getpid()) {
		if stat, err := procid.ReadStat(pid); err == nil && stat.Comm == readers.Name && !stat.Exiting && !stat.Zombie() {
			return pid
		}
	}
	return 0
}

// TestReplacedHelper: the helper that takes the place of one that was killed is none of the command's processes.
func TestReplacedHelper(t *testing.T) {
	for _, wait := range []bool{false, true} {
		t.Run(fmt.Sprint("wait ", wait), func(t *testing.T) {
			helper := &replacing{told: filepath.Join(t.TempDir(), "told")}
			a, _ := mustRun(t, Options{
				WithoutKernel: true, NoGroup: true, Wait: wait, Directories: []string{t.TempDir()},
				helperPatience: patience.Limit, Every: MinEvery, Watch: helper.watch,
			}, "sh", "-c", `until [ -e "$0" ]; do sleep 0.01; done`, helper.told)
			if *a.Processes.Left != 0 {
				t.Errorf("%d processes are left", *a.Processes.Left)
			}
			for _, p := range a.Tree {
				if p.Name == readers.Name {
					t.Errorf("the helper is among the processes: %+v", p)
				}
			}
		})
	}
}
