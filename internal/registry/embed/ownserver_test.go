// SPDX-License-Identifier: Apache-2.0

package embed_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/pki/pkitest"
	"github.com/attune-hpc/attune/internal/registry/embed"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// configuration is that of a site's own server, as docs/reference/registry.md
// asks for it.
const configuration = `
listen: "127.0.0.1:-1"
ports_file_dir: %[1]q
jetstream { store_dir: %[1]q, domain: attune }
tls { cert_file: %[2]q, key_file: %[3]q, ca_file: %[4]q, verify: true }
leafnodes {
  listen: %[5]q
  tls { cert_file: %[2]q, key_file: %[3]q, ca_file: %[4]q, verify: true }
}
`

// mustFree returns an address that nobody listens at: Debian's server does not
// tell where it listens for other sites.
func mustFree(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// mustStartOwn starts Debian's server, and returns its addresses for clients and
// for other sites.
func mustStartOwn(t *testing.T, files pki.Files) (clients, leaves string) {
	t.Helper()
	path, err := exec.LookPath("nats-server")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("nats-server is missing: apt-get install nats-server")
		}
		t.Skip("nats-server is missing: apt-get install nats-server")
	}
	dir := t.TempDir()
	config, leaf := filepath.Join(dir, "nats.conf"), mustFree(t)
	if err := os.WriteFile(config, fmt.Appendf(nil, configuration, dir, files.Cert, files.Key, files.CA, leaf), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(path, "-c", config)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Process.Signal(unix.SIGTERM); err != nil {
			t.Error(err)
		}
		_ = server.Wait() // Debian's ends with 1 then
	})
	for late := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("nats-server_%d.ports", server.Process.Pid)))
		var ports struct{ Nats []string }
		if err == nil && json.Unmarshal(text, &ports) == nil && len(ports.Nats) > 0 {
			return ports.Nats[0], "tls://" + leaf
		}
		if time.Now().After(late) {
			t.Fatalf("nats-server does not say where it listens: %s, %v", text, err)
		}
	}
}

// A site with NATS of its own, and another one that joins it.
func TestOwnServer(t *testing.T) {
	ca := pkitest.New(t)
	node := ca.Node(t, "node")
	clients, leaves := mustStartOwn(t, ca.Issue(t, pki.Request{
		Name: "nats", Role: attunev1.Role_ROLE_NODE, Hosts: []string{"127.0.0.1"},
	}))
	here := mustOpen(t, clients, node)
	mustPut(t, here, "solver")
	mustSee(t, here, "solver")
	site := mustStart(t, embed.Options{
		Socket: filepath.Join(t.TempDir(), "site"), Identity: ca.Node(t, "site"), Remotes: []string{leaves},
	})
	there := mustOpen(t, site.URL(), nil)
	mustSee(t, there, "solver")
	mustPut(t, there, "mesh")
	mustSee(t, here, "mesh")
}
