// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/testing/files"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const rules = `
rules:
  - deny: [call, insert]
    names: ["libc.so*:system", "libc.so*:exec*"]
    reason: no programs from within programs
  - allow: [set]
    names: ["*:attune_*"]
    users: [1000, root]
    min: 0
    max: 64
  - deny: [all]
    names: ["*:attune_*"]
  - allow: [system]
    names: [pipe.size]
    max: 1048576
`

func integer(n int64) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: n}}
}

func text(s string) *attunev1.Value { return &attunev1.Value{Kind: &attunev1.Value_Text{Text: s}} }

// asker is a user of this machine.
func asker(uid uint32) *attunev1.Principal { return authn.OfUser(uid) }

func TestCheck(t *testing.T) {
	p, err := Parse("the file", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	strict, err := Parse("the file", []byte("default: deny\nrules:\n  - allow: [load]\n"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		policy *Policy
		Request
		why string // empty: allowed
	}{
		{"no file", nil, Request{Action: "call", Names: []string{"libc.so.6:system"}, Asker: asker(1000), Owner: 1000}, ""},
		{"no file, another's process", nil, Request{Action: "set", Asker: asker(1000), Owner: 1001}, "belongs to user 1001"},
		{"root, another's process", nil, Request{Action: "set", Owner: 1001, Asker: asker(0)}, ""},
		{"nobody asks", nil, Request{Action: "set", Owner: 1000}, "belongs to user 1000"},
		{"admin, another's process", nil, Request{Action: "set", Asker: &attunev1.Principal{Uid: 7, Role: attunev1.Role_ROLE_ADMIN}, Owner: 1001}, ""},
		{"node", nil, Request{Action: "set", Asker: &attunev1.Principal{Uid: pki.NoUID, Role: attunev1.Role_ROLE_NODE}, Owner: 1001}, ""},
		{"no owner", nil, Request{Action: "set", Asker: asker(0), Owner: -1}, "belongs to user -1"},
		{"denied name", p, Request{Action: "call", Names: []string{"libc.so.6:execve"}, Asker: asker(0)}, "rule 1 of the file: no programs"},
		{"any of the names", p, Request{Action: "call", Names: []string{"a:b", "libc.so.6:system"}, Asker: asker(0)}, "rule 1"},
		{"other action", p, Request{Action: "replace", Names: []string{"libc.so.6:system"}, Asker: asker(0)}, ""},
		{"other name", p, Request{Action: "call", Names: []string{"libc.so.6:malloc_trim"}, Asker: asker(0)}, ""},
		{"within the bounds", p, Request{Action: "set", Names: []string{"x:attune_n"}, Values: []*attunev1.Value{integer(64)}, Asker: asker(0)}, ""},
		{"beyond", p, Request{Action: "set", Names: []string{"x:attune_n"}, Values: []*attunev1.Value{integer(65)}, Asker: asker(0)}, "rule 2 of the file allows values from 0 to 64 only"},
		{"below", p, Request{Action: "set", Names: []string{"x:attune_n"}, Values: []*attunev1.Value{integer(-1)}, Asker: asker(0)}, "rule 2"},
		{"no number", p, Request{Action: "set", Names: []string{"x:attune_n"}, Values: []*attunev1.Value{text("x")}, Asker: asker(0)}, "rule 2"},
		{"other user", p, Request{Action: "set", Names: []string{"x:attune_n"}, Values: []*attunev1.Value{integer(1)}, Asker: asker(7), Owner: 7}, "denied by rule 3"},
		{"text with a unit", p, Request{Action: "system", Names: []string{"pipe.size"}, Values: []*attunev1.Value{text("1M")}, Asker: asker(0)}, ""},
		{"text with too large a unit", p, Request{Action: "system", Names: []string{"pipe.size"}, Values: []*attunev1.Value{text("1g")}, Asker: asker(0)}, "rule 4 of the file allows values up to"},
		{"default deny", strict, Request{Action: "set", Names: []string{"x:y"}, Asker: asker(0)}, "set of x:y is not allowed by any rule"},
		{"allowed by a rule", strict, Request{Action: "load", Names: []string{"/lib/x.so"}, Asker: asker(0)}, ""},
		{"spoilt file", Denying(errors.New("line 3")), Request{Action: "load", Asker: asker(0)}, "line 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.policy.Check(tt.Request)
			switch {
			case tt.why == "" && err != nil:
				t.Error(err)
			case tt.why != "" && (!errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), tt.why)):
				t.Errorf("%v, want %q", err, tt.why)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ name, content, why string }{
		{"no YAML", "rules: [", "yaml"},
		{"second document", "default: allow\n---\ndefault: deny\n", "line 2: a second document begins here"},
		{"unknown field", "rule: []", "not found"},
		{"unknown field of a rule", "rules:\n  - allow: [set]\n    symbol: x", "not found"},
		{"unknown action", "rules:\n  - allow: [destroy]", `"destroy" is no action`},
		{"no verdict", "rules:\n  - names: [x]", "either allow or deny"},
		{"both", "rules:\n  - allow: [set]\n    deny: [set]", "either allow or deny"},
		{"bounds of a denial", "rules:\n  - deny: [set]\n    max: 1", "min and max belong to allow"},
		{"empty bounds", "rules:\n  - allow: [set]\n    min: 2\n    max: 1", "enclose nothing"},
		{"unknown user", "rules:\n  - allow: [set]\n    users: [nobody-of-this-name]", "nobody-of-this-name"},
		{"unknown group", "rules:\n  - allow: [set]\n    users: ['@no-such-group']", "no-such-group"},
		{"default without a word", "default:\nrules: []", `default: "" is neither allow nor deny`},
		{"default that is empty", "default: ''", `default: "" is neither allow nor deny`},
		{"a name that is empty", "rules:\n  - deny: [set]\n    names: ['']", "names: an empty text fits nothing"},
		{"no names", "rules:\n  - allow: [set]\n    names: []", "names: an empty list fits nothing: leave it out, or name some"},
		{"names without a list", "rules:\n  - allow: [set]\n    names:", "names: an empty list"},
		{"no users", "rules:\n  - allow: [set]\n    users: []", "users: an empty list"},
		{"users without a list", "rules:\n  - allow: [set]\n    users: ~", "users: an empty list"},
		{"no actions", "rules:\n  - allow: []", "allow: an empty list"},
		{"no actions that are denied", "rules:\n  - allow: [set]\n    deny:", "deny: an empty list"},
		{"no bound", "rules:\n  - allow: [set]\n    max:", "max: there is no number"},
		{"names that are no list", "rules:\n  - allow: [set]\n    names: {a: b}", "names: yaml: unmarshal errors: line 3"},
		{"default", "default: maybe", "neither allow nor deny"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Parse("f", []byte(tt.content)); err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%v, want %q", err, tt.why)
			}
		})
	}
}

func TestGroup(t *testing.T) {
	p, err := Parse("f", []byte("default: deny\nrules:\n  - allow: [all]\n    users: ['@root']\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(Request{Action: "set", Asker: asker(0)}); err != nil {
		t.Errorf("root is in group root: %v", err)
	}
	if err := p.Check(Request{Action: "set", Asker: asker(4711), Owner: 4711}); !errors.Is(err, ErrDenied) {
		t.Errorf("user 4711 is not: %v", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if p, err := Load(filepath.Join(dir, "none")); p != nil || err != nil {
		t.Errorf("no file: %v, %v", p, err)
	}
	spoilt := filepath.Join(dir, "spoilt")
	files.Write(t, spoilt, "rules: [", 0o600)
	p, err := Load(spoilt)
	if err == nil || !errors.Is(p.Check(Request{Action: "set", Asker: asker(5), Owner: 5}), ErrDenied) {
		t.Errorf("a spoilt file: %v, must deny", err)
	}
	open := filepath.Join(dir, "open")
	files.Write(t, open, "", 0o600)
	if err := os.Chmod(open, 0o622); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(open); err == nil {
		t.Error("a file that others may write is taken")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(rules))
	f.Add([]byte(serviceRules))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("f", data)
		if (p == nil) != (err != nil) {
			t.Errorf("%v, %v", p, err)
		}
	})
}

// The page for administrators names every action that rules can be about.
func TestPageNamesActions(t *testing.T) {
	page := files.Read(t, "../../docs/reference/policy.md")
	for _, kind := range attunev1.ActionKinds() {
		if !strings.Contains(string(page), "`"+kind+"`") {
			t.Errorf("%s is not there", kind)
		}
	}
}
