// SPDX-License-Identifier: Apache-2.0

// Package served is the frame of a daemon: the daemon is opened, serves until SIGINT or
// SIGTERM, reads its settings again at SIGHUP, and closes what it has opened. systemd, where
// it is there, is told how things are.
package served

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"slices"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// Frame is that of one daemon, which embeds it. Notify may be called from any goroutine.
type Frame struct {
	log     *slog.Logger
	hangup  chan os.Signal
	closers []func() error
}

// New returns the frame of a daemon. From now on SIGHUP ends nothing.
func New(log *slog.Logger) *Frame {
	f := &Frame{log: log, hangup: make(chan os.Signal, 1)}
	signal.Notify(f.hangup, unix.SIGHUP)
	return f
}

// Serve opens a daemon, and runs it until a signal. A second signal ends the process at once.
// Serve is called once.
func (f *Frame) Serve(ctx context.Context, open, run func(context.Context) error) (err error) {
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM)
	defer stop()
	defer signal.Stop(f.hangup)
	defer func() {
		for _, closer := range slices.Backward(f.closers) {
			err = errors.Join(err, closer())
		}
	}()
	if err := open(ctx); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() {
		stop() // from now on a signal has its ordinary effect
		f.Notify(daemon.SdNotifyStopping)
	})
	return run(ctx)
}

// CloseAtEnd has something closed when Serve ends, before what open has opened earlier.
func (f *Frame) CloseAtEnd(closer func() error) { f.closers = append(f.closers, closer) }

// Hangup receives a SIGHUP, at which the daemon calls Reloading.
func (f *Frame) Hangup() <-chan os.Signal { return f.hangup }

// Reloading has systemd know that the daemon reads its settings again, for as long as read does.
func (f *Frame) Reloading(read func()) {
	f.Notify(daemon.SdNotifyReloading)
	read()
	f.Notify(daemon.SdNotifyReady)
}

// Notify tells systemd how things are; without it nobody listens.
func (f *Frame) Notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		f.log.Debug("systemd is not told", "state", state, "error", err)
	}
}
