// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// A tunlet of several files is a directory; whichever of its files somebody else could
// have written, it is not started, and whichever changes, it is another one.
func TestFolder(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(dir string) error
		want    string // of the error; empty: there is none
		changed bool   // its checksum
	}{
		{name: "fine", prepare: func(string) error { return nil }},
		{name: "another module", prepare: func(dir string) error { return os.WriteFile(filepath.Join(dir, "lib/mod"), []byte("2"), 0o644) }, changed: true},
		{name: "another name", prepare: func(dir string) error {
			return os.Rename(filepath.Join(dir, "lib/mod"), filepath.Join(dir, "lib/mood"))
		}, changed: true},
		{name: "module for all", prepare: func(dir string) error { return os.Chmod(filepath.Join(dir, "lib/mod"), 0o666) }, want: "may be written by others"},
		{name: "directory for all", prepare: func(dir string) error { return os.Chmod(filepath.Join(dir, "lib"), 0o777) }, want: "may be written by others"},
		{name: "above it for all", prepare: func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, want: "may be written by others"},
		{name: "link", prepare: func(dir string) error { return os.Symlink("/bin/sh", filepath.Join(dir, "lib/sh")) }, want: "neither a regular file nor a directory"},
		{name: "no program", prepare: func(dir string) error { return os.Remove(filepath.Join(dir, sdk.ProgramPrefix+"x")) }, want: "no such file"},
		{name: "no executable", prepare: func(dir string) error { return os.Chmod(filepath.Join(dir, sdk.ProgramPrefix+"x"), 0o644) }, want: "is not an executable file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), sdk.ProgramPrefix+"x")
			if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.MkdirAll(filepath.Join(dir, "lib"), 0o755),
				os.WriteFile(filepath.Join(dir, sdk.ProgramPrefix+"x"), nil, 0o755), os.WriteFile(filepath.Join(dir, "lib/mod"), []byte("1"), 0o644)); err != nil {
				t.Fatal(err)
			}
			sum := func() string {
				t.Helper()
				sum, err := folder(dir).digest(context.Background(), objfile.NewDigests(""))
				if err != nil {
					t.Fatal(err)
				}
				return sum
			}
			before := sum()
			if err := tt.prepare(dir); err != nil {
				t.Fatal(err)
			}
			found := Find([]string{filepath.Dir(dir)}, nil)
			if len(found) != 1 || found[0].Name != "x" || found[0].Folder != dir || found[0].Path != filepath.Join(dir, sdk.ProgramPrefix+"x") {
				t.Fatalf("found %+v", found)
			}
			switch err := found[0].Err; {
			case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want %q", err, tt.want)
			case tt.want == "" && (sum() != before) != tt.changed:
				t.Errorf("changed: %v", !tt.changed)
			}
		})
	}
}
