// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"testing"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestMatrix: two users, an admin, the site and root, each by socket and by
// certificate, ask for each action in each one's processes, without a file and with
// one that allows everything. The rule: who has role admin or node reaches
// everybody, a user themselves; a service touches nothing without a file, and root's
// processes by a rule that names root only.
func TestMatrix(t *testing.T) {
	const ann, bob, carol = 5001, 5002, 5003
	certificate := func(uid uint32, role attunev1.Role) *attunev1.Principal {
		return &attunev1.Principal{Name: fmt.Sprint(uid), Uid: uid, Role: role}
	}
	askers := []struct {
		name   string
		who    *attunev1.Principal
		uid    int
		others bool // reaches others
	}{
		{"ann by certificate", certificate(ann, attunev1.Role_ROLE_USER), ann, false},
		{"ann by socket", authn.OfUser(ann), ann, false},
		{"bob by certificate", certificate(bob, attunev1.Role_ROLE_USER), bob, false},
		{"bob by socket", authn.OfUser(bob), bob, false},
		{"carol by an admin's certificate", certificate(carol, attunev1.Role_ROLE_ADMIN), carol, true},
		{"carol by socket", authn.OfUser(carol), carol, false},
		{"node by certificate", certificate(pki.NoUID, attunev1.Role_ROLE_NODE), -1, true},
		{"root by socket", authn.OfUser(0), 0, true},
		{"certificate without an id", certificate(pki.NoUID, attunev1.Role_ROLE_USER), -1, false},
		{"certificate without a role", certificate(ann, attunev1.Role_ROLE_UNSPECIFIED), -1, false},
		{"nobody", nil, -1, false},
	}
	all, err := Parse("the file", []byte("default: allow\nservice: [{mode: tune}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, asker := range askers {
		for _, owner := range []int{ann, bob, carol, 0} {
			reaches := asker.others || asker.uid == owner
			for name, p := range map[string]*Policy{"no file": nil, "all": all} {
				for _, action := range attunev1.ActionKinds() {
					err := p.Check(Request{Action: action, Names: []string{"x:y"}, Asker: asker.who, Owner: owner})
					if (err == nil) != reaches {
						t.Errorf("%s, %s: %s in a process of %d: %v, want allowed %v", name, asker.name, action, owner, err, reaches)
					}
				}
				mode, reason := p.Service(Asking{Owner: asker.who, UID: uint32(owner), Executable: "/bin/x"})
				if want := reaches && p != nil && owner != 0; (mode == "tune") != want || !want && mode != "" {
					t.Errorf("%s, registered by %s: a service may %q with a process of %d: %s, want %v", name, asker.name, mode, owner, reason, want)
				}
			}
		}
	}
}
