// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// userTable stands for the node's users.
func userTable(name string) (uint32, error) {
	if id, ok := numeric(name); ok {
		return id, nil
	}
	id, ok := map[string]uint32{"root": 0, "alice": 2001, "bob": 2002}[name]
	if !ok {
		return 0, errors.New("not known on this node")
	}
	return id, nil
}

func principal(role attunev1.Role, name string, uid uint32) *attunev1.Principal {
	return &attunev1.Principal{Role: role, Name: name, Uid: uid}
}

// A user's registration reaches nobody else, whatever it says.
func TestMeantUser(t *testing.T) {
	const user, admin, node = attunev1.Role_ROLE_USER, attunev1.Role_ROLE_ADMIN, attunev1.Role_ROLE_NODE
	tests := []struct {
		name  string
		owner *attunev1.Principal
		user  string
		want  uint32
		err   string
	}{
		{"a user", principal(user, "alice", 2001), "", 2001, ""},
		{"a user, by a certificate without id", principal(user, "alice", 0), "", 2001, ""},
		{"a user who is not known here, without id, is not root", principal(user, "carol", 0), "", 0, "owner"},
		{"nobody's name, without id, is not root", principal(user, "", 0), "", 0, "owner"},
		{"root as a user", principal(user, "root", 0), "", 0, ""},
		{"a user for himself", principal(user, "alice", 2001), "alice", 2001, ""},
		{"a user for himself by id", principal(user, "alice", 2001), "2001", 2001, ""},
		{"a user for another", principal(user, "alice", 2001), "bob", 0, "administrator"},
		{"a user for root", principal(user, "alice", 2001), "0", 0, "administrator"},
		{"an administrator for all", principal(admin, "root", 0), "", procevent.AnyUser, ""},
		{"an administrator for one", principal(admin, "root", 0), "bob", 2002, ""},
		{"the site for all", principal(node, "node1", 0), "", procevent.AnyUser, ""},
		{"the site for nobody known", principal(node, "node1", 0), "carol", 0, "not known"},
		{"nobody", nil, "", 0, "owner"},
		{"no role", principal(attunev1.Role_ROLE_UNSPECIFIED, "alice", 2001), "", 0, "owner"},
		{"the id that means everybody", principal(node, "node1", 0), "4294967295", 0, "not known"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := &attunev1.Registration{Executable: "x", Owner: test.owner, User: test.user}
			got, err := meantUser(r, userTable)
			switch {
			case test.err == "" && (err != nil || got != test.want):
				t.Errorf("user %d, %v, want %d", got, err, test.want)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("user %d, %v, want an error about %q", got, err, test.err)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	tests := []struct {
		name string
		r    *attunev1.Registration
	}{
		{"no executable", &attunev1.Registration{}},
		{"bad pattern", &attunev1.Registration{Executable: "a[", Owner: site("", "").GetOwner()}},
		{"arguments that take minutes", &attunev1.Registration{Executable: "a", Arguments: "(.?){1000}", Owner: site("", "").GetOwner()}},
		{"bad arguments", &attunev1.Registration{Executable: "a", Arguments: "(", Owner: site("", "").GetOwner()}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if c, err := compile(test.r, userTable); err == nil {
				t.Errorf("compiled %+v", c)
			}
		})
	}
}

func mustCompile(t *testing.T, r *attunev1.Registration) *registration {
	t.Helper()
	c, err := compile(r, userTable)
	if err != nil {
		t.Fatal(err)
	}
	if c.follows() {
		c.target, _ = readTarget().Ask(t.Context(), nil, 0, c.GetExecutable()) // in this process it does not fail
	}
	return c
}

func TestFits(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "solver-2.1"), filepath.Join(dir, "solver")
	if err := errors.Join(os.WriteFile(target, nil, 0o755), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		executable, name string
		want             bool
	}{
		{"solver", "/opt/bin/solver", true},
		{"solver", "solver", true},
		{"solver", "/opt/bin/solver2", false},
		{"solver", "", false},
		{"solver*", "/opt/bin/solver2", true},
		{"/opt/bin/solver", "/opt/bin/solver", true},
		{"/opt/bin/solver", "/home/x/solver", false},
		{"/opt/*/solver", "/opt/bin/solver", true},
		{"/opt/*/solver", "/opt/a/b/solver", false},
		{link, target, true}, // what the link names
		{link, link, true},   // as it was started
		{"*", "/usr/bin/lmp", true},
		{"*", "/bin/bash", false}, // starts applications
		{"*", "/usr/bin/mpirun.openmpi", false},
		{"bash", "/bin/bash", true}, // asked for by its name
	}
	for _, test := range tests {
		if got := mustCompile(t, site("r", test.executable)).fits(test.name, 5); got != test.want {
			t.Errorf("%q fits %q: %t", test.executable, test.name, got)
		}
	}
	alice := mustCompile(t, &attunev1.Registration{Executable: "s", Owner: principal(attunev1.Role_ROLE_USER, "alice", 2001)})
	if !alice.fits("s", 2001) || alice.fits("s", 2002) || alice.fits("s", 0) {
		t.Error("a registration fits another user's process")
	}
}

func TestNamesForTheKernel(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "python3.11"), filepath.Join(dir, "python3")
	if err := errors.Join(os.WriteFile(target, nil, 0o755), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		executable string
		want       []procevent.Name
	}{
		{"solver", []procevent.Name{{Text: "solver", UID: procevent.AnyUser}}},
		{"/opt/*/solver", []procevent.Name{{Text: "solver", UID: procevent.AnyUser}}},
		{"sol[vw]er", []procevent.Name{{Text: "sol", Beginning: true, UID: procevent.AnyUser}}},
		{"*", []procevent.Name{{Beginning: true, UID: procevent.AnyUser}}},
		{link, []procevent.Name{{Text: "python3", UID: procevent.AnyUser}, {Text: "python3.11", UID: procevent.AnyUser}}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, mustCompile(t, site("r", test.executable)).names()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.executable, diff)
		}
	}
}

func TestPrecedence(t *testing.T) {
	owned := func(id, executable string) *attunev1.Registration {
		return &attunev1.Registration{Id: id, Executable: executable, Owner: principal(attunev1.Role_ROLE_USER, "alice", 2001)}
	}
	younger, summed := site("younger", "s"), site("summed", "s")
	younger.RegisteredUnixNano, summed.Sha256 = 5, "ab"
	all := []*attunev1.Registration{
		site("wild", "*"), younger, site("older", "s"), site("path", "/s"), owned("own-wild", "*"), owned("own", "s"), summed, site("same", "s"),
	}
	var compiled []*registration
	for _, r := range all {
		compiled = append(compiled, mustCompile(t, r))
	}
	slices.SortFunc(compiled, precedes)
	var got []string
	for _, r := range compiled {
		got = append(got, r.GetId())
	}
	if diff := cmp.Diff([]string{"own", "own-wild", "summed", "path", "older", "same", "younger", "wild"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
