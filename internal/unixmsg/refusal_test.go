// SPDX-License-Identifier: Apache-2.0

package unixmsg_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/confine"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

// refusedCall has the process of a test refuse close_range to itself.
const refusedCall = "ATTUNE_TEST_REFUSED_CALL"

// TestCheckCloseAll: a filter that refuses the call is told of, with the call to allow.
func TestCheckCloseAll(t *testing.T) {
	if os.Getenv(refusedCall) != "" {
		f := &confine.Filter{Calls: make(map[uint32][]confine.Case), Others: confine.Allow}
		f.Set(confine.Refuse, unix.SYS_CLOSE_RANGE)
		if err := f.Install(); err != nil {
			t.Fatal(err)
		}
	}
	if err := unixmsg.CheckCloseAll(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestCheckCloseAll$")
	cmd.Env = append(os.Environ(), refusedCall+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "allow close_range: close_range: operation not permitted") {
		t.Errorf("%v: %s", err, out)
	}
}
