// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/attune-hpc/attune/controller/admit"
	"github.com/attune-hpc/attune/controller/change"
	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/controller/meter"
	"github.com/attune-hpc/attune/controller/objectivefiles"
	"github.com/attune-hpc/attune/controller/probe"
	"github.com/attune-hpc/attune/controller/track"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// newMeter prepares what measures.
func (d *desk) newMeter() {
	d.meter = meter.New(meter.Options{
		Members: d.members, Placer: func() *probe.Placer { return d.placer },
		Publish: d.publish, Offer: func(m *attunev1.PublishRequest) bool { return d.client.TryPublish(m) },
		Hurry:   func() { d.admission.Hurry() },
		Foreign: d.rights().Foreign, Run: d.run, UseBPF: d.config.UseBPF, Uprobes: d.config.uprobes,
		Budget: d.config.Budget, BudgetClock: d.config.budgetClock, Log: d.log,
	})
}

// newClient prepares the way to the Analyzer.
func (d *desk) newClient() (err error) {
	d.outbox = link.NewOutbox(link.OutboxOptions{
		Send: d.publish, Heard: d.meter.Heard, Living: d.members.List, Undelivered: d.undelivered, Silent: d.config.Analyzer != nil,
	})
	d.client, err = link.New(link.Options{
		Peer: link.Peer{Address: d.config.AnalyzerAddress}, Finder: d.config.Analyzer,
		Hello: d.hello, Living: d.members.Handles, Opened: d.opened, Lost: d.lost,
		Undelivered: d.undelivered, Log: d.config.Log,
	})
	return err
}

// newWanted prepares what the Analyzer may have measured, and who places points.
func (d *desk) newWanted() {
	objectives := objectivefiles.New(objectivefiles.Options{
		Members: d.members, User: d.userID(), Foreign: d.rights().Foreign, Offer: func(m *attunev1.PublishRequest) bool { return d.client.TryPublish(m) },
	})
	d.wanted = change.NewWanted(change.WantedOptions{
		Members: d.members, Placer: func() *probe.Placer { return d.placer },
		Hold: func(add func()) { d.admission.Hold(add) }, Free: func() { d.admission.Free() },
		Need:    func(spec *attunev1.MeasurePoint) { d.admission.Need(spec); d.prepare(spec) },
		Deliver: d.meter.Deliver, Sample: d.meter.Set, Read: d.meter.Want,
		Measure: func(text string) { objectives.Measure(d.ctx, text) }, Answer: d.answer,
	})
	d.placer = probe.New(probe.Options{
		Status: d.wanted.Status, Leaving: d.meter.Leave, Uprobes: d.meter.Uprobes, Functions: d.functions,
		Clock: d.meter.Clock(), Log: d.config.Log,
	})
}

// prepare loads the kernel's probes beside all else where a point can do without them in no
// process, so that the first process does not run without it meanwhile. What is wrong the
// point itself will say.
func (d *desk) prepare(spec *attunev1.MeasurePoint) {
	if !probe.KernelOnly(spec) {
		return
	}
	d.work.Go(func() {
		if uprobes, err := d.meter.Uprobes(); err == nil {
			_ = uprobes.Prepare()
		}
	})
}

// newAdmission prepares how processes come in.
func (d *desk) newAdmission(source track.Source) (err error) {
	d.admission, err = admit.New(admit.Options{
		Members: d.members, Placer: d.placer, Outbox: d.outbox, Meter: d.meter, Cache: d.cache, Functions: d.functions,
		Rights: d.rights(), JobID: d.config.JobID, Source: source, LookInterval: d.config.LookInterval,
		Digests: d.config.Digests, Readers: d.config.Readers, GatePath: d.config.GatePath, EarlyGate: d.config.EarlyGate,
		GateTimeout: d.config.GateTimeout, Library: d.config.LibraryPath, LateLibrary: d.config.LateLibrary,
		Entered: d.config.Entered, Context: d.ctx, Go: d.work.Go, Log: d.log,
	})
	return err
}

// newChanges prepares what the Analyzer may have changed.
func (d *desk) newChanges() (err error) {
	d.changes, err = change.New(change.Options{
		Members: d.members, StateDir: d.config.StateDir, Origin: d.config.ID, Hidden: d.config.Hidden,
		Policy: d.config.Policy, Owner: d.config.Session.Owner, Lease: d.config.Lease, Untouched: d.config.Untouched,
		TakesOver: d.config.TakesOver, Foreign: d.rights().Foreign, BringIn: d.admission.BringIn,
		Answered: d.config.Answered, Answer: d.answer, Go: d.work.Go, Context: d.ctx, Log: d.log,
	})
	return err
}
