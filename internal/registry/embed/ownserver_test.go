// SPDX-License-Identifier: Apache-2.0

package embed_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// configuration is that of a site's own server, as docs/reference/registry.md
// asks for it.
const configuration = `
listen: "127.0.0.1:-1"
http: "127.0.0.1:-1"
ports_file_dir: %[1]q
jetstream { store_dir: %[1]q, domain: attune }
tls { cert_file: %[2]q, key_file: %[3]q, ca_file: %[4]q, verify: true }
leafnodes {
  listen: "127.0.0.1:-1"
  tls { cert_file: %[2]q, key_file: %[3]q, ca_file: %[4]q, verify: true }
}
`

// mustStartOwn starts Debian's server, and returns its addresses for clients and
// for other sites.
func mustStartOwn(t *testing.T, files pki.Files) (clients, leaves string) {
	t.Helper()
	path := targets.NeedCommand(t, "nats-server", "nats-server")
	dir := t.TempDir()
	config := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, configuration, dir, files.Cert, files.Key, files.CA), 0o600); err != nil {
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
	var ports struct{ Nats, Monitoring []string }
	patience.Until(t, "nats-server to say where it listens", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("nats-server_%d.ports", server.Process.Pid)))
		return err == nil && json.Unmarshal(text, &ports) == nil && len(ports.Nats) > 0 && len(ports.Monitoring) > 0
	})
	return ports.Nats[0], fmt.Sprintf("tls://127.0.0.1:%d", leafPortOf(t, ports.Monitoring[0]))
}

// leafPortOf asks a server where it listens for other sites, which the file of
// its ports does not say.
func leafPortOf(t *testing.T, monitoring string) int {
	t.Helper()
	answer, err := http.Get(monitoring + "/varz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	var said struct{ Leaf struct{ Port int } }
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil || said.Leaf.Port == 0 {
		t.Fatalf("nats-server says %+v of other sites, %v", said, err)
	}
	return said.Leaf.Port
}

// A site with NATS of its own, and another one that joins it.
func TestOwnServer(t *testing.T) {
	ca := pkitest.New(t)
	analyzer := ca.Analyzer(t, "analyzer")
	clients, leaves := mustStartOwn(t, ca.Issue(t, pki.Request{
		Name: "nats", Role: attunev1.Role_ROLE_ANALYZER, Hosts: []string{"127.0.0.1"},
	}))
	here := mustOpen(t, clients, analyzer)
	mustPut(t, here, "solver")
	mustSee(t, here, "solver")
	site := mustStart(t, embed.Options{
		Socket: filepath.Join(t.TempDir(), "site"), Identity: ca.Analyzer(t, "site"), Remotes: []string{leaves},
	})
	there := mustOpen(t, site.URL(), nil)
	mustSee(t, there, "solver")
	mustPut(t, there, "mesh")
	mustSee(t, here, "mesh")
}
