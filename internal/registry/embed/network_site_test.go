// SPDX-License-Identifier: Apache-2.0

//go:build site

package embed_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// The sites' addresses, in networks that only they have, and the ports.
const (
	hubAddress, leafAddress = "10.98.0.1", "10.98.0.2"
	clientPort, leafPort    = ":4222", ":7422"
	leafPortOfProc          = ":1CFE" // as /proc/net/tcp has it
)

// firewall lets a site speak to one port of others', and nobody speak to it.
const firewall = `table inet site {
	chain input { type filter hook input priority 0; policy drop; iif lo accept; ct state established,related accept; }
	chain output { type filter hook output priority 0; policy drop; oif lo accept; ct state established,related accept; tcp dport 7422 accept; }
}
`

func mustRun(t *testing.T, stdin, name string, args ...string) {
	t.Helper()
	c := exec.Command(name, args...)
	c.Stdin = strings.NewReader(stdin)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// mustMakeNetworks makes a network namespace for each site, with a wire between
// them and the firewall in the second.
func mustMakeNetworks(t *testing.T) (hub, leaf string) {
	t.Helper()
	hub, leaf = fmt.Sprintf("attune-hub-%d", os.Getpid()), fmt.Sprintf("attune-leaf-%d", os.Getpid())
	for _, name := range []string{hub, leaf} {
		mustRun(t, "", "ip", "netns", "add", name)
		t.Cleanup(func() { mustRun(t, "", "ip", "netns", "del", name) })
		mustRun(t, "", "ip", "-n", name, "link", "set", "lo", "up")
	}
	mustRun(t, "", "ip", "-n", hub, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", leaf)
	for name, address := range map[string]string{hub: hubAddress, leaf: leafAddress} {
		mustRun(t, "", "ip", "-n", name, "addr", "add", address+"/24", "dev", "wire")
		mustRun(t, "", "ip", "-n", name, "link", "set", "wire", "up")
	}
	mustRun(t, firewall, "ip", "netns", "exec", leaf, "nft", "-f", "-")
	return hub, leaf
}

// in returns a command that is a child in a network.
func (c child) in(t *testing.T, network string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	options, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("ip", "netns", "exec", network, self)
	command.Env = append(os.Environ(), serveVariable+"="+string(options))
	command.Stdout = t.Output()
	return command
}

// mustServe starts a server in a network; it ends with the test.
func (c child) mustServe(t *testing.T, network string) {
	t.Helper()
	command := c.in(t, network)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(unix.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	})
}

func mustIssue(t *testing.T, ca *pkitest.Site, name, address string) *pki.Files {
	t.Helper()
	files := ca.Issue(t, pki.Request{Name: name, Role: attunev1.Role_ROLE_ANALYZER, Hosts: []string{address}})
	return &files
}

// Two sites, of which one lets nobody in and nothing out but to one port of the
// other, have one registry. Their servers are in the networks; clients reach
// each through its Unix socket, which networks do not concern.
func TestSitesBehindAFirewall(t *testing.T) {
	hubNet, leafNet := mustMakeNetworks(t)
	ca, dir := pkitest.New(t), t.TempDir()
	hub := embed.Options{
		Dir: filepath.Join(dir, "hub"), Socket: filepath.Join(dir, "hub.sock"),
		Listen: hubAddress + clientPort, LeafListen: hubAddress + leafPort,
	}
	leaf := embed.Options{
		Dir: filepath.Join(dir, "leaf"), Socket: filepath.Join(dir, "leaf.sock"),
		Listen: leafAddress + clientPort, Remotes: []string{"tls://" + hubAddress + leafPort},
	}
	child{Server: &hub, Files: mustIssue(t, ca, "hub", hubAddress)}.mustServe(t, hubNet)
	child{Server: &leaf, Files: mustIssue(t, ca, "leaf", leafAddress)}.mustServe(t, leafNet)

	here, there := mustOpen(t, "unix:"+hub.Socket, nil), mustOpen(t, "unix:"+leaf.Socket, nil)
	mustPut(t, here, "solver")
	mustSee(t, there, "solver")
	node, ctx := mustOpenNode(t, "unix:"+leaf.Socket, nil), t.Context()
	go func() { // ends with the node
		_ = node.Announce(ctx, nil, func() *attunev1.ControllerRecord {
			return &attunev1.ControllerRecord{Id: "c", Host: "far"}
		})
	}()
	patience.Until(t, "the controller there to be known here", func() bool {
		list := here.Controllers()
		return len(list) == 1 && list[0].GetHost() == "far"
	})
	for _, row := range []struct {
		name, from, to string
		open           bool
	}{
		{"in", hubNet, leafAddress + clientPort, false},
		{"out to another port", leafNet, hubAddress + clientPort, false},
		{"out to the port", leafNet, hubAddress + leafPort, true},
		{"within the site", leafNet, leafAddress + clientPort, true},
	} {
		if err := (child{Dial: row.to}).in(t, row.from).Run(); (err == nil) != row.open {
			t.Errorf("%s, to %s: %v, want it to be open: %v", row.name, row.to, err, row.open)
		}
	}
	testWireIsCut(t, hubNet, here, there)
}

// testWireIsCut takes the wire between the sites away for a while.
func testWireIsCut(t *testing.T, network string, here, there *registry.Client) {
	t.Helper()
	mustRun(t, "", "ip", "-n", network, "link", "set", "wire", "down")
	mustPut(t, here, "meanwhile")
	if !there.Connected() {
		t.Error("a client lost its own server with the wire")
	}
	mustSee(t, there, "solver")
	patience.Until(t, "what is sent meanwhile to be lost", func() bool { return unacknowledged(t, network) })
	mustRun(t, "", "ip", "-n", network, "link", "set", "wire", "up")
	mustSee(t, there, "meanwhile")
}

// unacknowledged returns whether the hub's server has sent bytes to another one
// that have not arrived there.
func unacknowledged(t *testing.T, network string) bool {
	t.Helper()
	connections, err := exec.Command("ip", "netns", "exec", network, "cat", "/proc/net/tcp").Output()
	if err != nil {
		t.Fatal(err)
	}
	const established, nothing = "01", "00000000:"
	for line := range strings.Lines(string(connections)) {
		// sl local_address rem_address st tx_queue:rx_queue ...
		fields := strings.Fields(line)
		if strings.HasSuffix(fields[1], leafPortOfProc) && fields[3] == established && !strings.HasPrefix(fields[4], nothing) {
			return true
		}
	}
	return false
}
