// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"golang.org/x/sys/unix"
)

// BenchmarkGate is what a process waits for at the gate at least: both ends of
// a conversation up to the answer to ready, with a process that maps nothing.
func BenchmarkGate(b *testing.B) {
	var refused atomic.Int64
	gate, err := New(Options{
		Path:     filepath.Join(b.TempDir(), "run", "gate.sock"),
		Attached: func(Attachment) {},
		Hold:     func(peercred.Peer) bool { return true },
		Refused:  func(Refusal) { refused.Add(1) },
	})
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- gate.Serve(context.Background()) }()
	for b.Loop() {
		converseOnce(b, gate.options.Path)
	}
	if err := errors.Join(gate.Close(), <-served); err != nil || refused.Load() == 0 {
		b.Fatal(refused.Load(), err)
	}
}

func converseOnce(b *testing.B, path string) {
	b.Helper()
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Net: "unixpacket", Name: path})
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	c := &client{b, conn}
	if err := conn.SetDeadline(time.Now().Add(patience.Limit)); err != nil {
		b.Fatal(err)
	}
	c.send(encodeHello(Hello{}))
	_, _, file := c.welcome()
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	c.send(encodeReady(abi.ReadyNoMap, unix.ENOMEM))
	c.finish()
}
