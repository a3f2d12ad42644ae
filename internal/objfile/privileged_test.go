// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"os"
	"path/filepath"
	"testing"
)

// TestStarters: what a program gains depends on who starts it, not on who asks.
func TestStarters(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "program"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if withoutSetuid(int(file.Fd())) {
		t.Skip("no setuid in ", file.Name())
	}
	own := starter{uid: uint32(os.Getuid()), gid: uint32(os.Getgid())}
	other := starter{uid: own.uid + 1, gid: own.gid + 1}
	confined := other
	confined.noNewPrivileges = true
	for _, tt := range []struct {
		name string
		mode os.FileMode
		by   starter
		want Privileged
	}{
		{"its owner", 0o755 | os.ModeSetuid, own, NotPrivileged},
		{"another user", 0o755 | os.ModeSetuid, other, SetUID},
		{"its group", 0o755 | os.ModeSetgid, own, NotPrivileged},
		{"another group", 0o755 | os.ModeSetgid, other, SetGID},
		{"of a group that may not execute it", 0o745 | os.ModeSetgid, other, NotPrivileged},
		{"without new privileges", 0o755 | os.ModeSetuid | os.ModeSetgid, confined, NotPrivileged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := file.Chmod(tt.mode); err != nil {
				t.Fatal(err)
			}
			if got := tt.by.privileged(file); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
