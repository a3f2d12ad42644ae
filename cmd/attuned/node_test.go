// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestAnalyzerIsAnalyzer: a node follows nobody but an Analyzer, whoever else has a
// certificate of the site; and one of a user's own that user.
func TestAnalyzerIsAnalyzer(t *testing.T) {
	for role, want := range map[attunev1.Role]bool{
		attunev1.Role_ROLE_ANALYZER: true, attunev1.Role_ROLE_NODE: false, attunev1.Role_ROLE_ADMIN: false,
		attunev1.Role_ROLE_USER: false, attunev1.Role_ROLE_UNSPECIFIED: false,
	} {
		err := isAnalyzer(&attunev1.Principal{Name: "n1", Uid: pki.NoUID, Role: role})
		if (err == nil) != want {
			t.Errorf("%v: %v, want it to be taken: %v", role, err, want)
		}
	}
	if err := isAnalyzer(authn.Self()); err != nil {
		t.Errorf("this user, by socket: %v", err)
	}
	if err := isAnalyzer(authn.OfUser(65534)); err == nil {
		t.Error("another user, by socket, was taken")
	}
}
