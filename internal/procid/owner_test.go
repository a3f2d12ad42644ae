// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

func TestStatusOwner(t *testing.T) {
	const user = "Name:\tx\nUid:\t1001\t1001\t1001\t1001\nGid:\t100\t100\t100\t100\n"
	tests := []struct {
		name, status string
		file         uint32
		want         uint32
	}{
		{"a user's", user + "CapPrm:\t0000000000000000\n", 1001, 1001},
		{"root's", "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nCapPrm:\t000001ffffffffff\n", 0, 0},
		{"setuid", "Uid:\t1001\t0\t0\t0\nGid:\t100\t100\t100\t100\nCapPrm:\t000001ffffffffff\n", 0, 0},
		{"setuid to another user", "Uid:\t1001\t1002\t1002\t1002\nGid:\t100\t100\t100\t100\nCapPrm:\t0000000000000000\n", 1002, 0},
		{"setuid that can go back", "Uid:\t1001\t1001\t0\t1001\nGid:\t100\t100\t100\t100\nCapPrm:\t0000000000000000\n", 1001, 0},
		{"setgid", "Uid:\t1001\t1001\t1001\t1001\nGid:\t100\t42\t42\t42\nCapPrm:\t0000000000000000\n", 0, 0},
		{"capability", user + "CapPrm:\t0000000000000400\n", 1001, 0},
		{"not to be dumped", user + "CapPrm:\t0000000000000000\n", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := ParseStatus(tt.status)
			if owner := s.owner(tt.file, s.Capabilities != 0); err != nil || owner != tt.want {
				t.Errorf("%d, %v, want %d", owner, err, tt.want)
			}
		})
	}
}

func FuzzOwner(f *testing.F) {
	f.Add("Uid:\t1001\t1001\t1001\t1001\nGid:\t100\t100\t100\t100\nCapPrm:\t0000000000000000\n", uint32(1001))
	f.Fuzz(func(t *testing.T, status string, file uint32) {
		s, err := ParseStatus(status)
		if owner := s.owner(file, s.Capabilities != 0); err == nil && owner != 0 && owner != file {
			t.Errorf("%+v of %d is %d's", s, file, owner)
		}
	})
}

func TestOwner(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	want := uint32(os.Geteuid())
	if want == 0 {
		want = 1001
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: want, Gid: want}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "a process of the user's", func() bool { // the kernel lets go of this one before
		owner, err := Owner(cmd.Process.Pid)
		return err == nil && owner == want
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, err := Owner(cmd.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("of a process that has ended: %v", err)
	}
}
