// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const serviceRules = `
service:
  - mode: none
    users: [1005]
    reason: they have asked for it
  - mode: tune
    owners: ["role:user"]
  - mode: advise
    owners: [1007]
    users: [root]
  - mode: tune
    owners: ["role:admin", "role:node"]
    users: [1001, 1002]
    executables: ["/opt/apps/*", lmp*]
  - mode: observe
    owners: ["role:node"]
`

func TestService(t *testing.T) {
	p, err := Parse("the file", []byte(serviceRules))
	if err != nil {
		t.Fatal(err)
	}
	empty, err := Parse("the file", []byte("default: allow\n"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := Parse("the file", []byte("service: [{mode: tune}]"))
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := parse("the file", []byte("service: [{mode: tune, owners: ['@empty']}]"), directory{known: map[string][]uint32{"@empty": nil}})
	if err != nil {
		t.Fatal(err)
	}
	spoken, err := Parse("the file", []byte(`service: [{mode: none, executables: ["vasp*"], reason: licence}, {mode: tune}]`))
	if err != nil {
		t.Fatal(err)
	}
	alice := &attunev1.Principal{Name: "alice", Uid: 1001, Role: attunev1.Role_ROLE_USER}
	admin := &attunev1.Principal{Name: "bob", Uid: 1007, Role: attunev1.Role_ROLE_ADMIN}
	node := &attunev1.Principal{Name: "n1", Uid: pki.NoUID, Role: attunev1.Role_ROLE_NODE}
	tests := []struct {
		name   string
		policy *Policy
		Asking
		mode, why string
	}{
		{"no file", nil, Asking{alice, 1001, "/bin/a"}, "", "there is no /etc/attune/policy.yaml"},
		{"no file, node", nil, Asking{node, 0, "/bin/a"}, "", "there is no"},
		{"no section", empty, Asking{alice, 1001, "/bin/a"}, "", "no rule of service in the file allows /bin/a"},
		{"spoilt file", Denying(errors.New("line 3")), Asking{node, 1001, "/bin/a"}, "", "line 3"},
		{"nobody", all, Asking{nil, 1001, "/bin/a"}, "", "their own only"},
		{"no role", all, Asking{&attunev1.Principal{Uid: 1001}, 1001, "/bin/a"}, "", "their own only"},
		{"own", p, Asking{alice, 1001, "/bin/a"}, "tune", "service rule 2 of the file allows tune"},
		{"another's, whatever rules say", all, Asking{alice, 1002, "/bin/a"}, "", "belongs to user 1002"},
		{"root's, whatever rules say", all, Asking{alice, 0, "/bin/a"}, "", "belongs to user 0"},
		{"denied user", p, Asking{node, 1005, "/opt/apps/x"}, "", "denies it: they have asked for it"},
		{"path", p, Asking{admin, 1001, "/opt/apps/bin/solver"}, "tune", "rule 4"},
		{"base name", p, Asking{node, 1002, "/home/x/lmp_serial"}, "tune", "rule 4"},
		{"other executable", p, Asking{node, 1002, "/home/x/cp"}, "observe", "rule 5"},
		{"unknown executable", p, Asking{node, 1002, ""}, "observe", "rule 5"},
		{"unknown executable, one denied", spoken, Asking{alice, 1001, ""}, "", "rule 1 of the file denies it: licence"},
		{"other executable of an admin", p, Asking{admin, 1002, "/home/x/cp"}, "", "no rule"},
		{"other user", p, Asking{node, 1003, "/opt/apps/x"}, "observe", "rule 5"},
		{"root, not named", p, Asking{node, 0, "/usr/sbin/sshd"}, "", "no rule"},
		{"root, not named by a rule for all", all, Asking{node, 0, "/usr/sbin/sshd"}, "", "no rule"},
		{"root, named", p, Asking{admin, 0, "/usr/sbin/sshd"}, "advise", "rule 3"},
		{"empty group of owners", nobody, Asking{node, 1001, "/bin/a"}, "", "no rule"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mode, reason := tt.policy.Service(tt.Asking)
			if mode != tt.mode || !strings.Contains(reason, tt.why) {
				t.Errorf("%q, %q, want %q, %q", mode, reason, tt.mode, tt.why)
			}
		})
	}
}

func TestServiceRefuses(t *testing.T) {
	tests := []struct{ name, content, why string }{
		{"no mode", "service: [{owners: [root]}]", "service: rule 1: mode"},
		{"unknown mode", "service: [{mode: tune}, {mode: kill}]", `service: rule 2: mode: "kill"`},
		{"unknown field", "service: [{mode: tune, user: [1]}]", "not found"},
		{"unknown role", "service: [{mode: tune, owners: ['role:king']}]", `"king" is no role`},
		{"role of a process", "service: [{mode: tune, users: ['role:user']}]", "no role"},
		{"unknown owner", "service: [{mode: tune, owners: [nobody-of-this-name]}]", "owners: user nobody-of-this-name is not known"},
		{"unknown user", "service: [{mode: tune, users: [nobody-of-this-name]}]", "users: user nobody-of-this-name is not known"},
		{"no executables", "service: [{mode: tune, executables: []}]", "executables: an empty list"},
		{"executables without a list", "service: [{mode: tune, executables: }]", "executables: an empty list"},
		{"no users", "service: [{mode: tune, users: []}]", "users: an empty list"},
		{"owners without a list", "service: [{mode: tune, owners: ~}]", "owners: an empty list"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Parse("f", []byte(tt.content)); err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%v, want %q", err, tt.why)
			}
		})
	}
}

// FuzzService: whatever the rules are, a user stays with their own, and nobody
// gets to root's without being named.
func FuzzService(f *testing.F) {
	f.Add([]byte(serviceRules), uint32(1001), uint32(1002), "/bin/x")
	f.Add([]byte("service: [{mode: tune, users: [0-1], executables: ['*']}]"), uint32(0), uint32(0), "")
	f.Fuzz(func(t *testing.T, data []byte, owner, uid uint32, executable string) {
		p, err := Parse("f", data)
		if err != nil {
			return
		}
		user := &attunev1.Principal{Uid: owner, Role: attunev1.Role_ROLE_USER}
		mode, reason := p.Service(Asking{Owner: user, UID: uid, Executable: executable})
		most, _ := p.ServiceAtMost(Asking{Owner: user, UID: uid})
		if slices.Index(Modes, mode) > slices.Index(Modes, most) {
			t.Errorf("%q gets %q, and any at most %q", executable, mode, most)
		}
		if least, why := p.Service(Asking{Owner: user, UID: uid}); least != "" && mode == "" {
			t.Errorf("%q gets nothing, and one that is not known %q: %s", executable, least, why)
		}
		if mode != "" && !authn.Reaches(user, uid) || reason == "" {
			t.Errorf("user %d gets to processes of %d: %s", owner, uid, reason)
		}
	})
}
