// SPDX-License-Identifier: Apache-2.0

package cert

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestWhatIsRevoked(t *testing.T) {
	root, err := pki.NewAuthority("root", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := root.Issue(pki.Request{Name: "n7", Role: attunev1.Role_ROLE_NODE, Valid: time.Minute})
	file := filepath.Join(t.TempDir(), "node.crt")
	if err := errors.Join(err, issued.Write(file, strings.TrimSuffix(file, ".crt")+".key", false)); err != nil {
		t.Fatal(err)
	}
	certificate, err := pki.ReadCertificate(file)
	if err != nil {
		t.Fatal(err)
	}
	ofFile := func(reason string) *attunev1.Revocation {
		return &attunev1.Revocation{Serial: pki.SerialOf(certificate), ExpiresUnix: certificate.NotAfter.Unix(), Reason: reason}
	}
	alice := []string{"alice"}
	for _, tt := range []struct {
		name  string
		flags revokeFlags
		args  []string
		want  *attunev1.Revocation
		fails string
	}{
		{name: "a name", args: alice, want: &attunev1.Revocation{Name: "alice"}},
		{
			name: "a name in a role, from before a time", args: alice,
			flags: revokeFlags{role: "user", before: "2026-01-31T12:00:00+01:00", reason: "lost her laptop"},
			want:  &attunev1.Revocation{Name: "alice", Role: attunev1.Role_ROLE_USER, BeforeUnix: 1769857200, Reason: "lost her laptop"},
		},
		{name: "a file", flags: revokeFlags{file: file}, want: ofFile("certificate of n7")},
		{name: "a file, and why", flags: revokeFlags{file: file, reason: "n7 was stolen"}, want: ofFile("n7 was stolen")},
		{name: "a serial number", flags: revokeFlags{serial: "1F:0a:77"}, want: &attunev1.Revocation{Serial: "1f0a77"}},
		{name: "nothing", fails: "one is needed"},
		{name: "two names", args: []string{"alice", "bob"}, fails: "one is needed"},
		{name: "a name and a file", args: alice, flags: revokeFlags{file: file}, fails: "one is needed"},
		{name: "a file and a serial number", flags: revokeFlags{file: file, serial: "1f"}, fails: "one is needed"},
		{name: "a file of a role", flags: revokeFlags{file: file, role: "node"}, fails: "go with a name"},
		{name: "a serial number from before a time", flags: revokeFlags{serial: "1f", before: "2026-01-31T12:00:00Z"}, fails: "go with a name"},
		{name: "no file", flags: revokeFlags{file: file + ".none"}, fails: "node.crt.none"},
		{name: "no serial number", flags: revokeFlags{serial: "alice"}, fails: "no serial number"},
		{name: "no role", args: alice, flags: revokeFlags{role: "king"}, fails: `"king" is no role`},
		{name: "no time", args: alice, flags: revokeFlags{before: "yesterday"}, fails: "yesterday"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.flags.revocation(tt.args)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("%v, %v, want %q", got, err, tt.fails)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got, protocmp.Transform()); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// What others have written is shown without what a terminal would obey.
func TestShowRevoked(t *testing.T) {
	list := []*attunev1.Revocation{
		{Name: "alice", Role: attunev1.Role_ROLE_USER, BeforeUnix: 1769857200, RevokedUnix: 1769857300, By: "root (admin)", Reason: "lost\x1b[31m"},
		{Name: "n7", BeforeUnix: 1769857200, RevokedUnix: 1769857300, By: "root (admin)"},
		{Serial: "1f0a77", RevokedUnix: 1769857300, By: "root (admin)", Reason: "test"},
	}
	show := func(list []*attunev1.Revocation, asJSON bool) (stdout, stderr string) {
		var out, errs strings.Builder
		if err := printRevocations(&cli.Env{Stdout: &out, Stderr: &errs}, list, asJSON); err != nil {
			t.Error(err)
		}
		return out.String(), errs.String()
	}
	text, _ := show(list, false)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != len(list)+1 || strings.Contains(text, "\x1b") {
		t.Fatalf("%q", text)
	}
	for i, want := range []string{"user alice, from before " + moment(1769857200), "any role n7, from before ", "serial 1f0a77 "} {
		if line := lines[i+1]; !strings.HasPrefix(line, moment(1769857300)) || !strings.Contains(line, want) || !strings.Contains(line, "root (admin)") {
			t.Errorf("%q lacks %q", line, want)
		}
	}
	document, _ := show(list, true)
	var back attunev1.ListRevocationsResponse
	if err := protojson.Unmarshal([]byte(document), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(list, back.GetRevocations(), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if out, says := show(nil, false); out != "" || says != "Nothing is revoked.\n" {
		t.Errorf("of nothing: %q, %q", out, says)
	}
}
