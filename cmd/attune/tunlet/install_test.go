// SPDX-License-Identifier: Apache-2.0

package tunlet

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// A user without a home directory, such as root in a systemd unit, has no tunlets of their
// own: what the package installed for everybody is not touched instead.
func TestNoHome(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("HOME", "")
	named := filepath.Join(t.TempDir(), "attune-tunlet-of-a-test")
	files.Write(t, named, "", 0o600)
	env := &cli.Env{Stdout: io.Discard, Stderr: io.Discard}
	for _, tt := range []struct {
		name    string
		command *cobra.Command
		args    []string
		refused bool
	}{
		{"install", newTunletInstall(env), []string{filepath.Join(t.TempDir(), "attune-tunlet-none")}, true},
		{"remove", newTunletRemove(env), []string{"of-a-test"}, true},
		{"remove what is named", newTunletRemove(env), []string{"--dir", filepath.Dir(named), "of-a-test"}, false},
	} {
		tt.command.SetArgs(tt.args)
		tt.command.SilenceErrors, tt.command.SilenceUsage = true, true
		err := tt.command.Execute()
		told := new(exitcode.Error)
		if refused := errors.As(err, &told) && strings.Contains(told.Remedy, "with --dir") && strings.Contains(told.Error(), "HOME"); refused != tt.refused {
			t.Errorf("%s: %v, remedy %q; want it refused: %v", tt.name, err, told.Remedy, tt.refused)
		}
	}
	if _, err := os.Stat(named); err == nil {
		t.Error("what was named is not removed")
	}
}
