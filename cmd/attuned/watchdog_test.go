// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/served"
	"github.com/attune-hpc/attune/internal/testing/lockedtext"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/turns"
)

// systemd hears that attuned lives for as long as its essential loops turn.
func TestWatchdogIsFedByLoops(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	t.Setenv("WATCHDOG_USEC", "30000")
	log := new(lockedtext.Text)
	a := &service{turns: turns.New(), log: slog.New(slog.NewTextHandler(log, nil))}
	a.Frame = served.New(a.log)
	loop := a.turns.Begin("discovery", patience.Limit, true)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); a.watchdog(ctx) }()
	defer func() { cancel(); <-ended }()
	mustHear := func() {
		t.Helper()
		word := make([]byte, 64)
		if err := listener.SetReadDeadline(time.Now().Add(patience.Limit)); err != nil {
			t.Fatal(err)
		}
		if n, err := listener.Read(word); err != nil || string(word[:n]) != "WATCHDOG=1" {
			t.Fatalf("systemd hears %q, %v", word[:n], err)
		}
	}
	mustHear()
	mustHear()
	loop.End()
	loop = a.turns.Begin("discovery", 0, true) // it stands from now on
	patience.Until(t, "word of the loop", func() bool { return strings.Contains(log.String(), "loop=discovery") })
	drain(t, listener) // what was sent until then
	if err := listener.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := listener.Read(make([]byte, 64)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("systemd hears that attuned lives although a loop stands (%v)", err)
	}
	loop.End()
	mustHear()
	if got := strings.Count(log.String(), "a loop stands"); got != 1 {
		t.Errorf("logged %d times:\n%s", got, log)
	}
}

// drain takes all that a socket has received by now.
func drain(t *testing.T, socket *net.UnixConn) {
	t.Helper()
	raw, err := socket.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		for received := true; received; {
			_, _, err := unix.Recvfrom(int(fd), make([]byte, 64), unix.MSG_DONTWAIT)
			received = err == nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
