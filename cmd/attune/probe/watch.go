// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/probe/probeview"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/rundir"
	"github.com/attune-hpc/attune/local"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// watchProbes measures in processes and shows what is seen, until they have
// ended, it is interrupted, or its time is up.
func watchProbes(ctx context.Context, p *cli.Env, flags watchFlags, pids []int, points []*attunev1.MeasurePoint) error {
	cli.OutlivePipes()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	defer flags.stacks.close()
	if err := flags.stacks.open(points); err != nil {
		return err
	}
	held, rest, err := flags.in.holders(ctx, pids)
	if err != nil {
		return err
	}
	defer func() { closeHolders(held) }()
	if len(rest) > 0 {
		if err := existing(rest); err != nil {
			return err
		}
		if len(points) == 0 {
			return usageNothingToWatch(rest)
		}
		s, err := newProbeSession(ctx, p, rest, flags.holdFlags)
		if err != nil {
			return err
		}
		attached, running, err := hold(ctx, s, rest)
		defer func() {
			cli.EndAtNext(stop)
			letGo(ctx, s, attached)
		}()
		if err != nil {
			return err
		}
		h, err := dialSession(rundir.SocketIn(s.Dir.Path, local.Socket))
		if err != nil {
			return err
		}
		h.pids = running
		held = append(held, h)
	}
	if len(points) == 0 {
		return show(ctx, p, flags, withAdded(held), nil)
	}
	return show(ctx, p, flags, eachOnce(held), points)
}

// usageNothingToWatch: no point is given, and none was added.
func usageNothingToWatch(pids []int) error {
	return exitcode.UsageError(fmt.Errorf("no measure point is given, and none was added to process %d", pids[0]),
		"write: attune probe watch PID... POINT...")
}

// show prints what all sessions stream until ctx ends or they do. It fails if
// no point at all could be placed.
func show(ctx context.Context, p *cli.Env, flags watchFlags, held []*holder, points []*attunev1.MeasurePoint) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, errs := streamAll(ctx, flags, held, points)
	from := callers{}
	defer from.close()
	name := from.name
	if flags.in.session != "" {
		name = nil // its processes may be on another machine
	}
	var pids []int32
	for _, h := range held {
		pids = append(pids, h.pids...)
	}
	asked := len(pids) * len(points)
	printer := probeview.New(probeview.Options{
		Output: p.Stdout, Notes: p.Stderr, Pids: pids, JSON: flags.json, Histogram: flags.histogram, Caller: name, Ended: from.forget,
		Top: flags.top, Screen: flags.top > 0 && term.IsTerminal(unix.Stdout), Columns: columns,
	})
	until := newLimit(flags.duration, cancel)
	defer until.stop()
	printAll(printer, events, flags.interval, until, asked, cancel)
	printer.Unhit()
	if err := errors.Join(unwritten(printer), flags.stacks.write(printer)); err != nil {
		return err
	}
	for err := range errs {
		if err != nil {
			return cli.Said(err)
		}
	}
	if printer.Placed() {
		return nil
	}
	if until.past() && printer.Refused() < asked {
		return &exitcode.Error{
			Code: exitcode.Failure, Err: fmt.Errorf("no measure point was in place within %v", patience),
			Remedy: "a process has to run, or to come to a safe point, for that",
		}
	}
	return failedProbes(printer.Refused(), asked)
}

// streamAll has all sessions stream their events, until ctx ends or they do. Both channels are
// closed then; there is room for all errors.
func streamAll(ctx context.Context, flags watchFlags, held []*holder, points []*attunev1.MeasurePoint) (<-chan seen, <-chan error) {
	events, errs := make(chan seen, 64), make(chan error, len(held))
	var streams sync.WaitGroup
	for i, h := range held {
		request := &attunev1.WatchProbesRequest{Session: h.place.session, Host: h.place.host, Pids: h.pids, Points: points, Follow: flags.follow}
		streams.Go(func() {
			errs <- stream(ctx, h, request, func(e *attunev1.WatchProbesResponse) { events <- seen{i, e} })
		})
	}
	go func() { // ends with the streams
		streams.Wait()
		close(errs)
		close(events)
	}()
	return events, errs
}

// columns is how wide the terminal is; 0: not known.
func columns() int {
	width, _, _ := term.GetSize(unix.Stdout)
	return width
}

// seen is what a stream, by its number, has seen.
type seen struct {
	stream int
	event  *attunev1.WatchProbesResponse
}

// printAll shows events until there are no more, and intervals. It gives up
// when all points that were asked for are refused and none ever was in place, or nothing can
// be written: a process may execute a program that has no such place, and another one later.
func printAll(printer *probeview.Printer, events <-chan seen, interval time.Duration, until *limit, asked int, giveUp func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	defer printer.Flush(true)
	for {
		select {
		case <-tick.C:
			printer.Flush(false)
		case e, ok := <-events:
			if !ok {
				return
			}
			printer.Event(e.stream, e.event)
			if printer.Placed() {
				until.begin()
			}
		}
		if printer.Err() != nil || !printer.Placed() && asked > 0 && printer.Refused() == asked {
			giveUp()
		}
	}
}

// unwritten is the error of what could not be written. Where its reader has gone the watch has
// ended as one that is interrupted.
func unwritten(printer *probeview.Printer) error {
	if err := printer.Err(); !errors.Is(err, syscall.EPIPE) {
		return err
	}
	return nil
}

// stream passes on what one session sees.
func stream(ctx context.Context, h *holder, request *attunev1.WatchProbesRequest, to func(*attunev1.WatchProbesResponse)) error {
	call, err := h.WatchProbes(ctx, request)
	if err != nil {
		return err
	}
	for {
		event, err := call.Recv()
		switch {
		case errors.Is(err, io.EOF), ctx.Err() != nil, status.Code(err) == codes.Canceled:
			return nil
		case err != nil:
			return err
		}
		to(event)
	}
}
