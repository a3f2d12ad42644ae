// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDescriptor(t *testing.T) {
	const info = "pos:\t0\nflags:\t0102001\nmnt_id:\t27\nino:\t4096\nlock:\t1: FLOCK ADVISORY WRITE 1 00:01:4 0 EOF\ninotify wd:1 ino:5 sdev:1\n"
	if got, err := parseDescriptor(info); err != nil || got != (Descriptor{Flags: 0o102001, Mount: 27, Inode: 4096}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "pos:\t0\nmnt_id:\t27\n", "flags:\t9\n", "flags:\t01\nino:\t-1\n"} {
		if _, err := parseDescriptor(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	file, err := os.OpenFile(t.TempDir()+"/file", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(file.Fd())
	if got, err := ReadDescriptor(os.Getpid(), fd); err != nil || got.Flags&(unix.O_ACCMODE|unix.O_APPEND) != unix.O_WRONLY|unix.O_APPEND || got.Mount == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	file.Close()
	if _, err := ReadDescriptor(os.Getpid(), fd); !errors.Is(err, ErrGone) {
		t.Errorf("closed: %v", err)
	}
}
