// SPDX-License-Identifier: Apache-2.0

package account

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestRefused: where nothing is started, the files of an earlier account keep what they have.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for _, row := range []struct {
		name, want string
		args       []string
	}{
		{"limit", "nothing was started", []string{"--limit", "cgroup=1G", "--", "true"}},
		{"no such program", "not found", []string{"--", filepath.Join(dir, "none")}},
	} {
		t.Run(row.name, func(t *testing.T) {
			json, series := filepath.Join(dir, "a.json"), filepath.Join(dir, "a.csv")
			for _, path := range []string{json, series} {
				files.Write(t, path, "earlier", 0o600)
			}
			cmd := Command(&cli.Env{Stdout: os.Stdout, Stderr: io.Discard})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(append([]string{"--without-root", "--no-cgroup", "--json", json, "--series", series}, row.args...))
			err := cmd.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want %q", err, row.want)
			}
			for _, path := range []string{json, series} {
				if got, err := os.ReadFile(path); err != nil || string(got) != "earlier" {
					t.Errorf("%s has %q, %v", path, got, err)
				}
			}
		})
	}
}
