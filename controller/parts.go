// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/attune-hpc/attune/controller/attach"
	"github.com/attune-hpc/attune/controller/capability"
	"github.com/attune-hpc/attune/controller/change"
	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/meter"
	"github.com/attune-hpc/attune/controller/probe"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/peercred"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// othersSocket is the mode of a gate for another user's processes, whom the
// kernel names at each connection.
const othersSocket = 0o666

// gateOptions let the user in whose processes are followed.
func (c *Controller) gateOptions() attach.Options {
	o := attach.Options{
		Path: c.config.GatePath, Early: c.config.EarlyGate, Attached: c.atGate, Hold: c.holds, Refused: c.refused,
		Timeout: c.config.gateTimeout, Log: c.config.Log,
	}
	if user := c.config.Session.User; user != nil {
		o.Mode = othersSocket
		o.Admit = func(p peercred.Peer) error {
			if p.UID != int(user.GetUid()) {
				return fmt.Errorf("%w: user %d is not the session's %d", attach.ErrNotAdmitted, p.UID, user.GetUid())
			}
			return nil
		}
	}
	return o
}

// newMeter prepares what measures.
func (c *Controller) newMeter() {
	c.meter = meter.New(meter.Options{
		Members: c.members, Placer: func() *probe.Placer { return c.placer },
		Publish: c.publish, Offer: func(m *attunev1.PublishRequest) bool { return c.client.TryPublish(m) },
		Hurry:   func() { c.arrivals.change(func() { c.arrivals.news = time.Now() }) },
		Foreign: c.foreign, Run: c.run, UseBPF: c.config.UseBPF, Uprobes: c.config.uprobes,
		Budget: c.config.Budget, BudgetClock: c.config.budgetClock, Log: c.log,
	})
}

// newClient prepares the way to the Analyzer.
func (c *Controller) newClient() (err error) {
	c.mechanisms = c.config.Mechanisms
	if c.mechanisms == nil {
		c.mechanisms = capability.Mechanisms(capability.Probe(c.ctx, capability.Options{Fast: true}))
	}
	c.outbox = link.NewOutbox(link.OutboxOptions{
		Send: c.publish, Heard: c.meter.Heard, Undelivered: c.undelivered, Silent: c.config.Analyzer != nil,
	})
	c.client, err = link.New(link.Options{
		Peer: link.Peer{Address: c.config.AnalyzerAddress}, Finder: c.config.Analyzer,
		Hello: c.hello, Living: c.members.Handles, Opened: c.opened, Lost: c.lost,
		Undelivered: c.undelivered, Log: c.config.Log,
	})
	return err
}

func (c *Controller) newTracker(source track.Source) (err error) {
	c.tracker, err = track.New(track.Options{
		JobID: c.config.JobID, Handler: &follower{c}, Source: source, PollInterval: c.config.LookInterval,
		Digests: c.config.Digests, Log: c.config.Log,
	})
	return err
}

// newChanges prepares what the Analyzer may ask for.
func (c *Controller) newChanges() (err error) {
	c.points = change.NewPoints(change.PointsOptions{
		Members: c.members, Placer: func() *probe.Placer { return c.placer },
		Hold: func(add func()) { c.early.holds(c, add) }, Free: func() { c.early.lets(c) },
		Need: c.needAll, Deliver: c.meter.Deliver, Answer: c.answer,
	})
	c.changes, err = change.New(change.Options{
		Members: c.members, StateDir: c.config.StateDir, Origin: c.config.ID, Hidden: c.config.Hidden,
		Policy: c.config.Policy, Owner: c.config.Session.Owner, Lease: c.config.Lease, Untouched: c.config.Untouched,
		Foreign: c.foreign, BringIn: func(ctx context.Context, t *member.Member) { c.bringIn(ctx, t) },
		Answered: c.config.Answered, Answer: c.answer, Context: c.ctx, Log: c.log,
	})
	return err
}

func (c *Controller) hello() *attunev1.ControllerHello {
	host, _ := os.Hostname() // only for people
	return &attunev1.ControllerHello{
		ControllerId: c.config.ID, Host: host,
		Version: c.config.Version, Cpus: uint32(runtime.NumCPU()), Mechanisms: c.mechanisms,
		Registration: c.config.Session.Registration, Job: c.config.Session.Job, User: c.config.Session.User, Mode: c.config.Session.Mode,
		InForce: c.changes.InForce(),
	}
}
