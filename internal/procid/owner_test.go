// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

func TestRights(t *testing.T) {
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
			r, err := parseRights([]byte(tt.status))
			if err != nil || r.owner(tt.file) != tt.want {
				t.Errorf("%d, %v, want %d", r.owner(tt.file), err, tt.want)
			}
		})
	}
	for name, status := range map[string]string{
		"nothing": "", "no capabilities": user, "no ids": "CapPrm:\t0\n",
		"short ids": "Uid:\t1001\nGid:\t1\t1\t1\t1\nCapPrm:\t0\n", "words": "Uid:\ta\ta\ta\ta\nGid:\t1\t1\t1\t1\nCapPrm:\t0\n",
	} {
		if r, err := parseRights([]byte(status)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func FuzzRights(f *testing.F) {
	f.Add([]byte("Uid:\t1001\t1001\t1001\t1001\nGid:\t100\t100\t100\t100\nCapPrm:\t0000000000000000\n"), uint32(1001))
	f.Fuzz(func(t *testing.T, status []byte, file uint32) {
		r, err := parseRights(status)
		if err == nil && r.owner(file) != 0 && r.owner(file) != file {
			t.Errorf("%+v of %d is %d's", r, file, r.owner(file))
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
	owner, err := Owner(cmd.Process.Pid)
	if err != nil || owner != want {
		t.Errorf("%d, %v, want %d", owner, err, want)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, err := Owner(cmd.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("of a process that has ended: %v", err)
	}
}
