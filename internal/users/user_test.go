// SPDX-License-Identifier: Apache-2.0

package users

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// directory answers as getent(1) does where a directory service knows one user.
const directory = `#!/bin/sh
[ "$*" = "passwd -- carol" ] && exec echo 'carol:*:70001:70001::/home/carol:/bin/sh'
[ "$*" = "passwd -- 70001" ] && exec echo 'carol:*:70001:70001::/home/carol:/bin/sh'
[ "$*" = "passwd -- broken" ] && exec echo 'broken:*:many'
exit 2
`

func TestUserID(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "getent"), []byte(directory), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path+":"+os.Getenv("PATH"))
	tests := []struct {
		name string
		want uint32
		ok   bool
	}{
		{"root", 0, true},
		{"carol", 70001, true},
		{"nobody-of-that-name", 0, false},
		{"70001", 0, false},
		{"broken", 0, false},
		{"", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := UserID(t.Context(), tt.name); got != tt.want || (err == nil) != tt.ok {
				t.Errorf("%d, %v; want %d", got, err, tt.want)
			}
		})
	}
	if _, err := UserID(t.Context(), "nobody-of-that-name"); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v, want %v", err, ErrUnknown)
	}
}
