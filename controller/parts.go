// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"runtime"

	"github.com/attune-hpc/attune/controller/admit"
	"github.com/attune-hpc/attune/controller/capability"
	"github.com/attune-hpc/attune/controller/change"
	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/controller/meter"
	"github.com/attune-hpc/attune/controller/probe"
	"github.com/attune-hpc/attune/controller/track"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// newMeter prepares what measures.
func (c *Controller) newMeter() {
	c.meter = meter.New(meter.Options{
		Members: c.members, Placer: func() *probe.Placer { return c.placer },
		Publish: c.publish, Offer: func(m *attunev1.PublishRequest) bool { return c.client.TryPublish(m) },
		Hurry:   func() { c.admission.Hurry() },
		Foreign: c.rights().Foreign, Run: c.run, UseBPF: c.config.UseBPF, Uprobes: c.config.uprobes,
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

// newPoints prepares what the Analyzer may have measured, and who places it.
func (c *Controller) newPoints() {
	c.points = change.NewPoints(change.PointsOptions{
		Members: c.members, Placer: func() *probe.Placer { return c.placer },
		Hold: func(add func()) { c.admission.Hold(add) }, Free: func() { c.admission.Free() },
		Need:    func(spec *attunev1.MeasurePoint) { c.admission.Need(spec) },
		Deliver: c.meter.Deliver, Answer: c.answer,
	})
	c.placer = probe.New(probe.Options{
		Status: c.points.Status, Leaving: c.meter.Leave, Uprobes: c.meter.Uprobes, Functions: c.functions,
		Clock: c.meter.Clock(), Log: c.config.Log,
	})
}

// newAdmission prepares how processes come in.
func (c *Controller) newAdmission(source track.Source) (err error) {
	c.admission, err = admit.New(admit.Options{
		Members: c.members, Placer: c.placer, Outbox: c.outbox, Meter: c.meter, Cache: c.cache, Functions: c.functions,
		Rights: c.rights(), JobID: c.config.JobID, Source: source, LookInterval: c.config.LookInterval,
		Digests: c.config.Digests, GatePath: c.config.GatePath, EarlyGate: c.config.EarlyGate,
		GateTimeout: c.config.gateTimeout, Library: c.config.LibraryPath, LateLibrary: c.config.LateLibrary,
		Context: c.ctx, Go: c.work.Go, Log: c.log,
	})
	return err
}

func (c *Controller) rights() admit.Rights {
	return admit.Rights{User: c.config.Session.User, Owner: c.config.Session.Owner}
}

// newChanges prepares what the Analyzer may have changed.
func (c *Controller) newChanges() (err error) {
	c.changes, err = change.New(change.Options{
		Members: c.members, StateDir: c.config.StateDir, Origin: c.config.ID, Hidden: c.config.Hidden,
		Policy: c.config.Policy, Owner: c.config.Session.Owner, Lease: c.config.Lease, Untouched: c.config.Untouched,
		Foreign: c.rights().Foreign, BringIn: c.admission.BringIn,
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
