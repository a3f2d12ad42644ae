// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// A daemon is opened, reads its settings again at SIGHUP, ends at SIGTERM, and closes what it
// has opened, the latest first; systemd hears all of it.
func TestServe(t *testing.T) {
	heard := systemd(t)
	f := New(slog.New(slog.DiscardHandler))
	var did []string
	note := func(what string) func() error {
		return func() error { did = append(did, what); return nil }
	}
	err := f.Serve(t.Context(), func(context.Context) error {
		f.CloseAtEnd(note("close first"))
		f.CloseAtEnd(note("close second"))
		return nil
	}, func(ctx context.Context) error {
		send(t, unix.SIGHUP)
		<-f.Hangup()
		f.Reloading(func() { _ = note("reload")() })
		send(t, unix.SIGTERM)
		<-ctx.Done()
		return nil
	})
	if want := []string{"reload", "close second", "close first"}; err != nil || !slices.Equal(did, want) {
		t.Errorf("did %q, want %q (%v)", did, want, err)
	}
	for _, want := range []string{daemon.SdNotifyReloading, daemon.SdNotifyReady, daemon.SdNotifyStopping} {
		if got := heard(); got != want {
			t.Errorf("systemd hears %q, want %q", got, want)
		}
	}
}

// What was opened before something else could not be is closed, and nothing runs.
func TestServeCannotOpen(t *testing.T) {
	refused, closed := errors.New("refused"), errors.New("closed")
	f := New(slog.New(slog.DiscardHandler))
	err := f.Serve(t.Context(), func(context.Context) error {
		f.CloseAtEnd(func() error { return closed })
		return refused
	}, func(context.Context) error {
		t.Error("it runs")
		return nil
	})
	if !errors.Is(err, refused) || !errors.Is(err, closed) {
		t.Errorf("got %v, want both errors", err)
	}
}

// systemd is what hears the states of this process, one at each call.
func systemd(t *testing.T) (hear func() string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "notify")
	listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	return func() string {
		t.Helper()
		word := make([]byte, 64)
		if err := listener.SetReadDeadline(time.Now().Add(patience.Limit)); err != nil {
			t.Fatal(err)
		}
		n, err := listener.Read(word)
		if err != nil {
			t.Fatal(err)
		}
		return string(word[:n])
	}
}

// send sends this process a signal.
func send(t *testing.T, s unix.Signal) {
	t.Helper()
	if err := unix.Kill(unix.Getpid(), s); err != nil {
		t.Fatal(err)
	}
}
