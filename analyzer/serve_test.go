// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/channel"
)

// announcing tells of each connection that its server has taken.
type announcing struct {
	net.Listener
	accepted chan struct{}
}

func (a announcing) Accept() (net.Conn, error) {
	conn, err := a.Listener.Accept()
	if err == nil {
		a.accepted <- struct{}{}
	}
	return conn, err
}

func TestStopDoesNotWaitForPeersThatSayNothing(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "analyzer.sock")
	lis, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(Config{Mode: "observe"})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	accepted := make(chan struct{}, 1)
	go func() { served <- a.Serve(t.Context(), announcing{lis, accepted}) }()
	silent, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	<-accepted
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		a.Stop(t.Context())
	}()
	select {
	case <-stopped:
	case <-time.After(4 * channel.HelloPatience):
		t.Error("Stop hangs")
		silent.Close()
		<-stopped
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
