// SPDX-License-Identifier: Apache-2.0

package users

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// directory answers as getent(1) does where a directory service knows one user.
const directory = `#!/bin/sh
[ "$*" = "passwd -- carol" ] && exec echo 'carol:*:70001:70001::/home/carol:/bin/sh'
[ "$*" = "passwd -- 70001" ] && exec echo 'carol:*:70001:70001::/home/carol:/bin/sh'
[ "$*" = "passwd -- broken" ] && exec echo 'broken:*:many'
[ "$*" = "passwd" ] && exec printf '%s\n' root:x:0:0:root:/root:/bin/sh carol:*:70001:70001::/home/carol:/bin/sh dave:*:70002:70009::/home/dave:/bin/sh
[ "$*" = "group -- hpc" ] && exec echo 'hpc:*:70009:carol,root'
[ "$*" = "group -- stale" ] && exec echo 'stale:*:70010:carol,nobody-of-that-name'
[ "$*" = "group -- 70009" ] && exec echo 'hpc:*:70009:carol,root'
[ "$*" = "group -- large" ] && exec echo 'large:*:70011:eve,carol,root,frank'
[ "$*" = "passwd -- eve frank" ] && exec printf '%s\n' eve:*:70003:70003::/home/eve:/bin/sh frank:*:70004:70004::/home/frank:/bin/sh
[ "$*" = "group -- away" ] && exit 1
exit 2
`

func serveDirectory(t *testing.T) {
	t.Helper()
	path := t.TempDir()
	files.Write(t, filepath.Join(path, "getent"), directory, 0o700)
	t.Setenv("PATH", path+":"+os.Getenv("PATH"))
}

// TestMembers: listed ones and those whose own group it is, of the files and of the directory.
func TestMembers(t *testing.T) {
	serveDirectory(t)
	for _, row := range []struct {
		group string
		want  []uint32
		ok    bool
	}{
		{"hpc", []uint32{0, 70001, 70002}, true},
		{"root", []uint32{0}, true},
		{"large", []uint32{0, 70001, 70003, 70004}, true}, // those that no list has are asked for together
		{"no-group-of-that-name", nil, false},
		{"70009", nil, false},
		{"stale", nil, false},
		{"away", nil, false},
	} {
		t.Run(row.group, func(t *testing.T) {
			got, err := Members(t.Context(), row.group)
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, row.want) || (err == nil) != row.ok {
				t.Errorf("%d, %v; want %d", got, err, row.want)
			}
		})
	}
	if _, err := Members(t.Context(), "no-group-of-that-name"); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v, want %v", err, ErrUnknown)
	}
	t.Setenv("PATH", t.TempDir())
	if got, err := Members(t.Context(), "root"); err != nil || !slices.Contains(got, 0) {
		t.Errorf("without getent: %d, %v", got, err)
	}
}

func TestUserID(t *testing.T) {
	serveDirectory(t)
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
