// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// getent knows a user and a group that no file of this machine has: carol is listed, dave's own group it is.
const getent = `#!/bin/sh
case "$*" in
"passwd -- carol") echo carol:*:70001:70001::/home/carol:/bin/sh ;;
"group -- secret") echo secret:*:70009:carol ;;
passwd) echo dave:*:70002:70009::/home/dave:/bin/sh ;;
*) exit 2 ;;
esac
`

// TestDirectoryService: names of a directory service are users, also for a process that the policy is handed to and that
// cannot ask.
func TestDirectoryService(t *testing.T) {
	path := t.TempDir()
	files.Write(t, filepath.Join(path, "getent"), getent, 0o700)
	t.Setenv("PATH", path)
	const rules = "rules: [{deny: [set], users: ['@secret']}, {deny: [call], users: [carol]}]\n" +
		"service: [{mode: none, users: ['@secret']}, {mode: tune, owners: ['role:node']}]\n"
	loaded, err := Parse("f", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "")
	for _, row := range []struct {
		name string
		*Policy
	}{{"where it was loaded", loaded}, {"handed over", loaded.Text().Policy()}} {
		t.Run(row.name, func(t *testing.T) {
			for uid, want := range map[uint32]struct{ set, call, service bool }{
				70001: {false, false, false}, 70002: {false, true, false}, 70003: {true, true, true},
			} {
				allows := func(action string) bool {
					err := row.Check(Request{Action: action, Asker: asker(uid), Owner: int(uid)})
					if err != nil && !errors.Is(err, ErrDenied) {
						t.Error(err)
					}
					return err == nil
				}
				mode, why := row.Service(Asking{Owner: authn.OfUser(0), UID: uid})
				if set, call := allows("set"), allows("call"); set != want.set || call != want.call || (mode != "") != want.service {
					t.Errorf("user %d: set %v, call %v, %s: %q", uid, set, call, why, mode)
				}
			}
		})
	}
	if _, err := Parse("f", []byte(rules)); err == nil || !strings.Contains(err.Error(), "secret") {
		t.Errorf("with a directory service that is away: %v", err)
	}
}

// TestTextsDiffer: a group that has another member makes another policy of the same file.
func TestTextsDiffer(t *testing.T) {
	one := Text{Path: "f", Data: []byte("x"), Users: map[string][]uint32{"@hpc": {1}}}
	same, other := one, one
	same.Users = map[string][]uint32{"@hpc": {1}}
	other.Users = map[string][]uint32{"@hpc": {1, 2}}
	if !one.Equal(same) || one.Equal(other) {
		t.Errorf("equal to the same: %v, to another: %v", one.Equal(same), one.Equal(other))
	}
}
