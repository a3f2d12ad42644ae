//go:build privileged

// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/cmd/attune/internal/archived"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/testing/pgserver"
)

// TestServerAway: accounts that end while the site's server is away wait on the node, and
// are in the archive once a command reaches it.
func TestServerAway(t *testing.T) {
	server := pgserver.Start(t)
	url := server.Database("archive")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("ATTUNE_ARCHIVE_AT", url)
	keep := func(name string) error {
		a := &account.Account{Schema: account.SchemaID, Command: []string{"/bin/" + name}, Exit: account.Exit{Type: account.ExitNormal, Code: new(0)}}
		a.Start = time.Unix(1_800_000_000, 0).UTC()
		a.End = a.Start.Add(time.Second)
		return archived.Begin(a.Command, "", url).Keep(t.Context(), a)
	}
	if err := keep("first"); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	for _, name := range []string{"second", "third"} {
		if err := keep(name); err == nil || !strings.Contains(err.Error(), "the server does not answer") || !strings.Contains(err.Error(), "it waits in ") {
			t.Errorf("error %v", err)
		}
	}
	if _, err := attune(t, "list"); err == nil {
		t.Error("a list without a server")
	}
	server.Start()
	if err := keep("fourth"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		out := mustAttune(t, "list")
		wants(t, out, "first", "second", "third", "fourth")
		if n := strings.Count(out, "second"); n > 2 { // name and pattern
			t.Errorf("it is there several times:\n%s", out)
		}
	}
}
