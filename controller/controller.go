// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/admit"
	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Controller is one Application Controller.
type Controller struct {
	*desk

	tracks struct { // the tracker, which ends before what ends with ctx
		stop context.CancelFunc
		work sync.WaitGroup
	}
	serve  sync.WaitGroup     // the client, which ends last
	giveUp context.CancelFunc // ends the client with messages undelivered
}

// New constructs a controller. Programs can be started as soon as it returns:
// they wait in the gate until Start serves it.
func New(config Config) (_ *Controller, err error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	c := &Controller{desk: &desk{parts: &parts{
		config: config, log: config.Log.With("component", "controller"),
		cache: objfile.NewCache(), members: member.NewSet(),
		functions: new(sites.Functions),
	}}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	// The kernel takes 8 ms to check the programs: as long as all the rest.
	source := sync.OnceValue(func() track.Source { return findSource(c.config, c.log) })
	go source()
	defer func() {
		if err != nil {
			err = errors.Join(err, c.dispose())
			if events := source(); events != nil {
				err = errors.Join(err, events.Close())
			}
		}
	}()
	c.newMeter()
	c.newWanted()
	if err := c.newClient(); err != nil {
		return nil, err
	}
	if err := c.newAdmission(source()); err != nil {
		return nil, err
	}
	if err := c.newChanges(); err != nil {
		return nil, err
	}
	return c, nil
}

// Environment is what the environment of a program that this process starts needs, beside
// what it has, to come to this controller's gate.
func (c *Controller) Environment() []string { return c.config.Environment(os.Getpid()) }

// Start runs the controller until Stop. Meanwhile it restores what controllers
// that died left behind.
func (c *Controller) Start(context.Context) error {
	c.work.Go(c.changes.Restore)
	c.run("gate", c.admission.Serve)
	c.track()
	c.run("arrivals", c.admission.Settle)
	c.run("forked children", c.admission.Nurse)
	c.meter.Start()
	c.run("status", c.statusLoop)
	var deliver context.Context // outlives ctx: what is queued is delivered after Stop
	deliver, c.giveUp = context.WithCancel(context.Background())
	c.serve.Go(func() {
		err := c.client.Run(deliver, c.handle)
		switch {
		case err == nil || deliver.Err() != nil:
		case errors.Is(err, link.ErrOver):
			c.over(nil, err)
		default:
			c.log.Warn("analyzer is gone; changes will be undone when their leases end", "error", err)
		}
	})
	return nil
}

// track starts the tracker.
func (c *Controller) track() {
	ctx, stop := context.WithCancel(c.ctx)
	c.tracks.stop = stop
	c.tracks.work.Go(func() {
		if err := c.admission.Track(ctx); err != nil {
			c.log.Error("part of the controller ended", "part", "tracker", "error", err)
		}
	})
}

// Follow makes a process, with all that it forks, part of the job.
func (c *Controller) Follow(pid int) error {
	return c.admission.Follow(c.ctx, pid)
}

// FollowProcess is Follow for a process that is held, which may have ended.
func (c *Controller) FollowProcess(process *procid.Process) error {
	err := c.admission.FollowProcess(c.ctx, process)
	if err == nil {
		c.changes.TakeOver()
	}
	return err
}

// Attached is a process that was running before the controller took control of it.
type Attached = admit.Attached

// ErrHeld says that another controller has the process.
var ErrHeld = inject.ErrHeld

// Attach brings a running process, with all that it forks, under control: it
// is followed, and DMLib is injected into it where that is possible. The error
// says why the process cannot even be followed. The caller calls Leave before
// Stop.
func (c *Controller) Attach(ctx context.Context, pid int) (*Attached, error) {
	return c.admission.Attach(ctx, pid)
}

// AwaitPoints waits until so many measure points that are meant for every
// process have come from the Analyzer. A program started then has them in
// place before main.
func (c *Controller) AwaitPoints(ctx context.Context, n int) error {
	for c.placer.ForAll() < n {
		if !beat.Pause(ctx, time.Millisecond) {
			return fmt.Errorf("wait for measure points: %w", ctx.Err())
		}
	}
	return nil
}

// Processes tells what is known of the processes under control now.
func (c *Controller) Processes() (processes []*attunev1.Process) {
	for _, t := range c.members.List() {
		processes = append(processes, t.Snapshot())
	}
	return processes
}

// Changes tells of the changes that are in force now, the earliest first.
func (c *Controller) Changes() []actuate.InForce { return c.changes.List() }

// Living counts the processes under control.
func (c *Controller) Living() int { return len(c.members.Handles()) }

// findSource returns the best source of process events that this user may have. Nil:
// /proc is polled.
func findSource(config Config, log *slog.Logger) track.Source {
	if config.Source != nil {
		return config.Source
	}
	if config.UseBPF {
		events, err := procevent.New(procevent.Options{})
		if err == nil {
			return track.FromBPF(events)
		}
		log.Info("no process events by BPF", "reason", err)
	}
	connector, err := track.NewConnector()
	if err != nil {
		log.Info("no process connector, polling /proc", "reason", err)
		return nil
	}
	return connector
}
