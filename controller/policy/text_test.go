// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"testing"

	"github.com/attune-hpc/attune/internal/authn"
)

// A policy that was handed to another process decides as it did.
func TestText(t *testing.T) {
	deny, err := Parse("p", []byte("default: deny\nservice:\n  - mode: tune\n    users: [\"7\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	user := authn.OfUser(7)
	for name, p := range map[string]*Policy{"none": nil, "rules": deny, "invalid": Denying(errors.New("no yaml"))} {
		t.Run(name, func(t *testing.T) {
			other := p.Text().Policy()
			request := Request{Action: "set_variable", Names: []string{"x"}, Asker: user, Owner: 7}
			if a, b := p.Check(request), other.Check(request); (a == nil) != (b == nil) || a != nil && a.Error() != b.Error() {
				t.Errorf("check says %v, and then %v", a, b)
			}
			mode, why := p.Service(Asking{Owner: user, UID: 7})
			if m, w := other.Service(Asking{Owner: user, UID: 7}); m != mode || w != why {
				t.Errorf("service says %q, %q, and then %q, %q", mode, why, m, w)
			}
		})
	}
	if p := (Text{Path: "p", Data: []byte("- no")}).Policy(); p.Check(Request{Asker: user, Owner: 7}) == nil {
		t.Error("what is no policy allows something")
	}
}
