// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// way makes a stream.
type way struct {
	name string
	open func() (stream, error)
	// vain says that it fails as the way before it has; nil: it never is.
	vain func(error) bool
}

// waysOf lists them, the best first.
func waysOf(prefer string, interval time.Duration) []way {
	poll := way{name: "poll", open: func() (stream, error) { return newPoller(interval), nil }}
	if prefer == ModePoll {
		return []way{poll}
	}
	return []way{
		{name: "bpf", open: openBPF},
		{name: "bpf without accounts", open: openBPFWithoutAccounts, vain: isPrivilege},
		{name: "connector", open: openConnector},
		poll,
	}
}

// listener feeds the hub by one way after the other. It belongs to one goroutine.
type listener struct {
	ways    []way
	hub     *hub
	changed func() // the way
	log     *slog.Logger
}

// run goes the best way there is, and when it fails the next one.
func (l *listener) run(ctx context.Context) error {
	var reasons, err error
	for _, way := range l.ways {
		if way.vain != nil && way.vain(err) {
			continue
		}
		err = l.listen(ctx, way, reasons)
		if ctx.Err() != nil {
			return nil
		}
		l.log.Warn("processes are found another way from now on", "without", way.name, "reason", err)
		reasons = errors.Join(reasons, fmt.Errorf("%s: %w", way.name, err))
	}
	return reasons // polling does not fail
}

// listen runs one way until it fails. reasons say why not a better one.
func (l *listener) listen(ctx context.Context, way way, reasons error) (err error) {
	s, err := way.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var reason string
	if reasons != nil {
		reason = reasons.Error()
	}
	if err := l.hub.use(s, reason); err != nil {
		return err
	}
	defer l.hub.leave(s)
	l.changed()
	l.log.Info("processes are found", "mode", s.mode(), "by", way.name)
	if err := s.run(ctx, func(e event) { l.hub.event(ctx, e) }); err != nil {
		return err
	}
	return errEnded
}

// errEnded says that a stream has ended by itself.
var errEnded = errors.New("its events have ended")
