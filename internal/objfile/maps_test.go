// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// TestMappingsOfASlowReader: whoever is read slowly may have executed another program each
// time; that there is no memory is known of who has ended.
func TestMappingsOfASlowReader(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ended.Wait() }()
	if err := unix.Waitid(unix.P_PID, ended.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		pid  int
		gone bool
	}{"goes on": {os.Getpid(), false}, "has ended": {ended.Process.Pid, true}} {
		t.Run(name, func(t *testing.T) {
			late := 0
			got, err := allMappings(test.pid, func(pid int) ([]byte, error) {
				if late++; late < 100 {
					return nil, nil
				}
				return readMaps(pid)
			})
			if errors.Is(err, procid.ErrGone) != test.gone || (len(got) > 0) == test.gone {
				t.Errorf("%d mappings, %v", len(got), err)
			}
			if test.gone && late != 1 {
				t.Errorf("read %d times", late)
			}
		})
	}
}
