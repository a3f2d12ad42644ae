// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Where an Analyzer says how it is reached over the network, that is what nodes are told.
func TestAdvertisedAddresses(t *testing.T) {
	listen := func(network, address string) net.Listener {
		lis, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { lis.Close() })
		return lis
	}
	dir, err := os.MkdirTemp("", "a") //nolint:usetesting // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	listeners := []net.Listener{listen("unix", socket), listen("tcp", "127.0.0.1:0"), listen("tcp", ":0")}
	port := func(i int) string {
		_, port, _ := net.SplitHostPort(listeners[i].Addr().String())
		return port
	}
	for _, tt := range []struct{ advertise, want []string }{
		{nil, []string{"unix:" + socket, "127.0.0.1:" + port(1), net.JoinHostPort(host, port(2))}},
		{[]string{"head.example.org:7117", "10.0.0.254:7117"}, []string{"head.example.org:7117", "10.0.0.254:7117", "unix:" + socket}},
	} {
		a := &analyzerService{settings: analyzerSettings{advertise: tt.advertise, stateDir: dir}, listeners: listeners}
		if got := a.record(); !slices.Equal(got.GetAddresses(), tt.want) || got.GetHost() != host {
			t.Errorf("advertised %q: %v, want %q", tt.advertise, got, tt.want)
		}
	}
}
