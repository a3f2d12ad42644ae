// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// NeedCommand is the path of a command of one of Debian's packages. Where the command is not
// installed, the test is skipped, for which `make test` fails (scripts/allowed-skips).
func NeedCommand(tb testing.TB, name, debian string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		tb.Skipf("%v: apt-get install %s", err, debian)
	}
	return path
}

// NeedLibrary is NeedCommand for a shared library.
func NeedLibrary(tb testing.TB, name, debian string) string {
	tb.Helper()
	path := filepath.Join("/usr/lib/x86_64-linux-gnu", name)
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("%v: apt-get install %s", err, debian)
	}
	return path
}
