// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
)

// TestMain has this process wait for what its children leave behind: in a
// container there may be nobody who does.
func TestMain(m *testing.M) {
	readers.ServeIfAsked(Operations()...)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	leaktest.Main(m)
}
