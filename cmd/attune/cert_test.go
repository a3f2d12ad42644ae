// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/cert"
	"github.com/attune-hpc/attune/internal/exitcode"
)

// TestCert makes a CA and certificates, as an administrator would.
func TestCert(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	steps := []struct {
		name, command string
		code          int
		says          string
	}{
		{"no CA yet", "issue --ca ca --uid 1001 alice", 1, "attune cert init"},
		{"a CA", "init --ca ca", 0, "keep it to yourself"},
		{"a CA that is there", "init --ca ca", 1, "there is a CA in ca already"},
		{"a user", "issue --ca ca --uid 1001 alice", 0, "user alice, user id 1001"},
		{"a user once more", "issue --ca ca --uid 1001 alice", 1, "--replace"},
		{"a renewal", "issue --ca ca --uid 1001 --days 20 --replace alice", 0, "20 days left"},
		{"a user nobody knows", "issue --ca ca no-such-user", 2, "--uid"},
		{"a known admin", "issue --ca ca --role admin root", 0, "admin root, user id 0"},
		{"root as user", "issue --ca ca --out x root", 2, "root has no certificate of role user"},
		{"a node", "issue --ca ca --role node --host n1,10.0.0.1 n1.example.org", 0, "serves  n1.example.org, n1, 10.0.0.1"},
		{"a node whose name is no host's", "issue --ca ca --role node --host n5 --out n5 'node five'", 0, "serves  n5\n"},
		{"a node by its name", "issue --ca ca --role node n2", 0, "serves  n2"},
		{"a node with a user", "issue --ca ca --role node --uid 5 n3", 2, "it has no user id"},
		{"no role", "issue --ca ca --role king bob", 2, `"king" is no role`},
		{"no user id", "issue --ca ca --uid 4294967295 bob", 2, "is no user id"},
		{"no days", "issue --ca ca --uid 5 --days -1 bob", 2, "--days"},
		{"longer than the CA", "issue --ca ca --uid 5 --days 36500 bob", 2, "the CA's own certificate ends before"},
		{"a path as name", "issue --ca ca --uid 5 ../bob", 2, "--out"},
		{"two names", "issue --ca ca alice bob", 2, "one name"},
		{"part of a day", "issue --ca ca --uid 5 --days 0.5 carol", 0, "12h0m0s left"},
		{"less than a minute", "issue --ca ca --uid 5 --days 0.0001 dave", 2, "--days 0.0001"},
		{"an issuing CA of none", "init --ca none --issuer issuer", 1, "attune cert init"},
		{"an issuing CA", "init --ca ca --issuer issuer", 0, "365 days left"},
		{"an issuing CA that is there", "init --ca ca --issuer issuer", 1, "there is a CA in issuer already"},
		{"an issuing CA below one", "init --ca issuer --issuer below", 2, "may not sign another CA"},
		{"an issuing CA that outlives the root", "init --ca ca --issuer late --days 4000", 2, "ends before"},
		{"a node for a week", "issue --ca issuer --role node n4", 0, "7 days left"},
		{"a user for a week", "issue --ca issuer --uid 7 erin", 0, "7 days left"},
		{"the root's certificate with it", "show n4/ca.crt", 0, "CA Attune CA"},
		{"to renew by nobody", "renew alice/user.crt", 2, "--issuer"},
		{"to renew by whoever is not there", "renew --issuer 127.0.0.1:1 alice/user.crt", 1, "the files are as they were"},
		{"to renew nothing", "renew --issuer 127.0.0.1:1", 1, "attune cert issue"},
		{"both", "show alice/user.crt n2/node.crt", 0, "node n2"},
		{"none of one's own", "show", 1, "attune cert issue"},
		{"what is none", "show ca/ca.key", 1, "PEM certificate"},
		{"what is not there", "show nothing.crt", 1, "nothing.crt"},
	}
	for _, step := range steps {
		got := shellIn(t, dir, "$ATTUNE_BINARY cert "+step.command, "")
		if got.code != step.code || !strings.Contains(got.stdout+got.stderr, step.says) {
			t.Fatalf("%s: %+v, want %d and %q", step.name, got, step.code, step.says)
		}
	}
	for path, mode := range map[string]os.FileMode{"ca/ca.key": 0o600, "ca/ca.crt": 0o644, "alice/user.key": 0o600, "alice/user.crt": 0o644, "alice/ca.crt": 0o644, "alice": 0o700} {
		if info, err := os.Stat(filepath.Join(dir, path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want %o", path, info, err, mode)
		}
	}
}

// TestCertShowTrouble: what a service would not take is said, with what to do.
func TestCertShowTrouble(t *testing.T) {
	dir := t.TempDir()
	for _, command := range []string{
		"init --ca ca", "init --ca other",
		"issue --ca ca --uid 1001 alice", "issue --ca ca --uid 1002 bob", "issue --ca ca --uid 1003 carol",
	} {
		if got := shellIn(t, dir, "$ATTUNE_BINARY cert "+command, ""); got.code != 0 {
			t.Fatalf("%s: %+v", command, got)
		}
	}
	tests := []struct{ name, spoil, file, says string }{
		{"key for others", "chmod 644 alice/user.key", "alice/user.crt", "chmod 600"},
		{"another CA", "cp other/ca.crt bob/ca.crt", "bob/user.crt", "is not of the CA"},
		{"another's key", "cp bob/user.key carol/user.key", "carol/user.crt", "does not match"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := shellIn(t, dir, tt.spoil, ""); got.code != 0 {
				t.Fatalf("%+v", got)
			}
			got := shellIn(t, dir, "$ATTUNE_BINARY cert show --json "+tt.file, "")
			var shown []cert.Shown
			if err := json.Unmarshal([]byte(got.stdout), &shown); err != nil || len(shown) != 1 {
				t.Fatalf("%v in %+v", err, got)
			}
			if got.code != 1 || !strings.Contains(shown[0].Trouble, tt.says) {
				t.Errorf("%d, %q, want 1 and %q", got.code, shown[0].Trouble, tt.says)
			}
		})
	}
}

// TestCertRevoke has a site not believe certificates any more, and lists them.
func TestCertRevoke(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("takes root of the Analyzer's machine")
	}
	s, dir := newSite(t), t.TempDir()
	if got := shellIn(t, dir, "$ATTUNE_BINARY cert init --ca ca && $ATTUNE_BINARY cert issue --ca ca --role node n7", ""); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	for _, step := range []struct {
		command string
		code    int
		says    []string
	}{
		{"revoked", exitcode.OK, []string{"Nothing is revoked"}},
		{"revoke", exitcode.Usage, []string{"one is needed"}},
		{"revoke --role king alice", exitcode.Usage, []string{`"king" is no role`}},
		{"revoke --file DIR/n7/node.crt", exitcode.OK, []string{"serial ", "root (", "certificate of n7"}},
		{"revoke --serial 1F:0a:77 --reason test", exitcode.OK, []string{"serial 1f0a77", "test"}},
		{"revoke --role user --before 2026-01-31T12:00:00Z alice", exitcode.OK, []string{"user alice, from before 2026-01-31T"}},
		{"revoked", exitcode.OK, []string{"certificate of n7", "serial 1f0a77", "user alice"}},
		{"revoked --json", exitcode.OK, []string{`"serial"`, "1f0a77"}},
	} {
		args := strings.Fields("cert " + strings.ReplaceAll(step.command, "DIR", dir))
		got, code := s.ask(args...)
		if code != step.code {
			t.Fatalf("attune %v: code %d, %q", args, code, got)
		}
		for _, word := range step.says {
			if !strings.Contains(got, word) {
				t.Errorf("attune %v: %q lacks %q", args, got, word)
			}
		}
	}
}
