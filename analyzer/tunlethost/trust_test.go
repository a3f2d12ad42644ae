// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// TestChangedBinary replaces the binary between two starts.
func TestChangedBinary(t *testing.T) {
	dir := testTunlet.Dir(t, "good")
	path := filepath.Join(dir, sdk.ProgramPrefix+"good")
	o := newObserver()
	h := New(fast(dir), o)
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	tn := receive(t, o.ready)
	data := files.Read(t, path)
	if err := errors.Join(os.Remove(path), os.WriteFile(path, append(data, 0), 0o755)); err != nil {
		t.Fatal(err)
	}
	tn.Kill("test")
	st := eventually(t, h, func(st *Status) bool { return st.GetState() == StateRefused })
	if !strings.Contains(st.GetReason(), "has changed since it was started first") {
		t.Errorf("status %+v", st)
	}
}

// TestTrust refuses binaries that somebody else could have written.
func TestTrust(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(dir, path string) error
		want    string
	}{
		{name: "fine", prepare: func(string, string) error { return nil }},
		{name: "file for all", prepare: func(_, path string) error { return os.Chmod(path, 0o757) }, want: "may be written by others (mode 0757); run: chmod go-w"},
		{name: "file for the group", prepare: func(_, path string) error { return os.Chmod(path, 0o775) }, want: "may be written by others"},
		{name: "directory for all", prepare: func(dir, _ string) error { return os.Chmod(dir, 0o777) }, want: "may be written by others"},
		{name: "not executable", prepare: func(_, path string) error { return os.Chmod(path, 0o644) }, want: "is not an executable file"},
		{name: "a directory", prepare: func(_, path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) }, want: "is not an executable file"},
		{name: "dangling link", prepare: func(_, path string) error {
			return errors.Join(os.Remove(path), os.Symlink("/nowhere", path))
		}, want: "no such file"},
		{name: "link into an open directory", prepare: func(dir, path string) error {
			open := filepath.Join(dir, "open")
			return errors.Join(os.Mkdir(open, 0o755), os.Rename(path, filepath.Join(open, "x")),
				os.Symlink(filepath.Join(open, "x"), path), os.Chmod(open, 0o777))
		}, want: "may be written by others"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, sdk.ProgramPrefix+"x")
			if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, nil, 0o755), os.Chmod(path, 0o755), tt.prepare(dir, path)); err != nil {
				t.Fatal(err)
			}
			err := trusted(path)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("trusted: %v, want %q", err, tt.want)
			}
		})
	}
}

// TestTrustOwner looks at a file of somebody else: ours, seen by another user,
// or by root one that was given away.
func TestTrustOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	files.Write(t, path, "", 0o755)
	uid := os.Geteuid()
	if uid == 0 {
		if err := os.Chown(path, 12345, 0); err != nil {
			t.Fatal(err)
		}
		uid = 12345
	}
	if err := ownedBy(path, uid+1); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("belongs to user %d", uid)) {
		t.Errorf("ownedBy another user: %v", err)
	}
	if err := ownedBy(path, uid); err != nil {
		t.Errorf("ownedBy the owner: %v", err)
	}
}
