// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/procid"
)

// TestRestrictions: services as their units start them, and as somebody does by hand.
func TestRestrictions(t *testing.T) {
	status := func(uid int, permitted, bounding string, rest string) string {
		return fmt.Sprintf("Uid:\t%d\t%[1]d\t%[1]d\t%[1]d\nGid:\t0\t0\t0\t0\nCapPrm:\t%s\nCapBnd:\t%s\n%s", uid, permitted, bounding, rest)
	}
	const none, all, own = "0000000000000000", "000001ffffffffff", "000001c001a810ee"
	const bound, free = "NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t5\n", "NoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n"
	tests := []struct{ name, service, status, missing string }{
		{"attuned by its unit", nodeService, status(0, own, own, bound), ""},
		{"attuned by hand", nodeService, status(0, all, all, free), "capabilities, no new privileges, system calls"},
		{"a user's attuned", nodeService, status(1000, none, none, bound), "user"},
		{"Analyzer by its unit", analyzerService, status(995, none, none, bound), ""},
		{"Analyzer by setpriv", analyzerService, status(995, none, all, free), "capabilities, no new privileges, system calls"},
		{"issuing service by its unit", issuingService, status(994, none, none, bound), ""},
		{"issuing service as root", issuingService, status(0, all, all, bound), "user, capabilities"},
		{"Analyzer of before, as root", analyzerService, status(0, all, all, free), "user, capabilities, no new privileges, system calls"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := procid.ParseStatus(tt.status)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, r := range restrictions(tt.service, s) {
				if r.State == missing {
					names = append(names, r.Name)
				}
			}
			if got := strings.Join(names, ", "); got != tt.missing {
				t.Errorf("missing: %q, want %q", got, tt.missing)
			}
		})
	}
}

// TestCertificate: keys that others may read, and one that its service cannot.
func TestCertificate(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the files have to be root's")
	}
	dir := t.TempDir()
	files := pki.FilesIn(dir, "node")
	if rows := certificate(files, "attune"); len(rows) > 0 {
		t.Errorf("of none: %v", rows)
	}
	for _, path := range []string{files.CA, files.Cert, files.Key} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const daemon = 1 // a user and group that are everywhere
	member, other := memberOfAnother(t)
	for _, tt := range []struct {
		mode   os.FileMode
		group  int
		reader string
		remedy string // of the key; empty: none
	}{
		{0o640, other, member, ""},
		{0o600, 0, "", ""},
		{0o640, daemon, "daemon", ""},
		{0o640, 0, "daemon", "chgrp daemon "},
		{0o600, daemon, "daemon", "chgrp daemon "},
		{0o600, 0, "nosuch", "chgrp nosuch "},
		{0o644, 0, "", "chmod 640"},
		{0o660, daemon, "daemon", "chmod 640"},
	} {
		if err := errors.Join(os.Chown(files.Key, 0, tt.group), os.Chmod(files.Key, tt.mode)); err != nil {
			t.Fatal(err)
		}
		rows := certificate(files, tt.reader)
		key := rows[len(rows)-1]
		if len(rows) != 3 || key.Name != filepath.Join(dir, "node.key") || (key.State == missing) != (tt.remedy != "") || !strings.Contains(key.Remedy, tt.remedy) {
			t.Errorf("mode %o, reader %q: %+v, want %q", tt.mode, tt.reader, key, tt.remedy)
		}
	}
}

// memberOfAnother returns a user of this machine, and a group that is not its first one; those
// of root, which has but one as a rule, where there is no such user.
func memberOfAnother(t *testing.T) (name string, group int) {
	t.Helper()
	groups, err := os.ReadFile("/etc/group")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(groups)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		name, _, _ := strings.Cut(fields[len(fields)-1], ",")
		if u, err := user.Lookup(name); err == nil && len(fields) == 4 && u.Gid != fields[2] {
			if gid, err := strconv.Atoi(fields[2]); err == nil {
				return name, gid
			}
		}
	}
	return "root", 0
}
