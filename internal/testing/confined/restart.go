// SPDX-License-Identifier: Apache-2.0

package confined

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// SetEnvironment gives a command the environment of a unit, as far as the test has not set
// the same names itself.
func SetEnvironment(t testing.TB, cmd *exec.Cmd, text string) {
	t.Helper()
	u, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = slices.Concat(u.environment, cmd.Environ())
}

// StaysEnded says whether systemd leaves the service of a unit alone after such an end, although the
// unit has Restart=always.
func StaysEnded(t testing.TB, text string, end *os.ProcessState) bool {
	t.Helper()
	u, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	status := end.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return slices.Contains(u.prevents, unix.SignalName(status.Signal()))
	}
	return slices.Contains(u.prevents, strconv.Itoa(status.ExitStatus()))
}
