// SPDX-License-Identifier: Apache-2.0

package ps

import (
	"fmt"
	"os"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/internal/readers"
)

// TestMain serves as the helper of these tests.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == readers.Argument {
		if err := readers.Serve(os.Stdin, os.Stdout, procs.Operations()...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
