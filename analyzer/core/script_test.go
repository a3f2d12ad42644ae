// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestScripts runs the scripts in testdata. Each command is an event (or
// several), its output the commands that the core gave. Rewrite the expected
// output with `go test ./analyzer/core -run Scripts -rewrite`.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			return s.run(t, d)
		})
	})
}

// script is one run of a core under a script.
type script struct {
	core *Core
	now  time.Duration
}

// run executes one command of a script.
func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	if at := s.duration(t, d, "at", -1); at >= 0 {
		s.now = at
	}
	switch d.Cmd {
	case "new":
		return s.create(t, d)
	case "samples":
		return s.samples(t, d)
	case "ticks":
		return s.ticks(t, d)
	case "play":
		return s.play(t, d)
	case "proposals":
		return s.proposals()
	case "held":
		return s.held()
	case "kept":
		return strings.Join(s.core.Kept(), " ")
	case "refusals":
		return render(s.core.Refusals())
	}
	if d.HasArg("answered") {
		return s.answered(s.event(t, d), attunev1.Verdict_VERDICT_UNSPECIFIED)
	}
	return s.step(s.event(t, d))
}

// create starts afresh.
func (s *script) create(t *testing.T, d *datadriven.TestData) string {
	mode, err := ParseMode(s.text(t, d, "mode", "tune"))
	if err != nil {
		return err.Error()
	}
	s.now = 0
	cfg := Config{Mode: mode, Keep: d.HasArg("keep"), queueWait: s.duration(t, d, "queue-wait", 0)}
	if own := s.text(t, d, "own", ""); own != "" {
		cfg.Objective = &attunev1.Objective{Name: own, LowerIsBetter: d.HasArg("less")}
	}
	s.core = New(cfg)
	return ""
}

// event parses the commands that are one event each.
func (s *script) event(t *testing.T, d *datadriven.TestData) Event {
	tunlet, id := s.text(t, d, "tunlet", "t"), s.text(t, d, "id", "p1")
	reason := strings.ReplaceAll(s.text(t, d, "reason", ""), "_", " ")
	switch d.Cmd {
	case "tunlet":
		return TunletReady{Info: s.describe(t, d)}
	case "gone":
		return TunletGone{Tunlet: tunlet, Reason: reason}
	case "process":
		return ProcessStarted{Process: s.number(t, d, "process", 1), Executable: s.text(t, d, "exe", "/bin/app"), Program: s.text(t, d, "program", "")}
	case "end":
		return ProcessEnded{Process: s.number(t, d, "process", 1)}
	case "propose":
		return Propose{Tunlet: tunlet, Proposal: s.proposal(t, d, id)}
	case "withdraw":
		w := Withdraw{Tunlet: tunlet, Proposal: id, Reason: reason}
		if d.HasArg("process") {
			for _, process := range s.values(t, d, "process") {
				w.Processes = append(w.Processes, uint64(process))
			}
		}
		return w
	case "result":
		return s.result(t, d, reason)
	case "done":
		return RequestDone{Request: s.text(t, d, "request", "")}
	case "verdict":
		return Verdict{Tunlet: tunlet, Proposal: id, Reason: reason, Verdict: enum(t, attunev1.Verdict_value,
			"VERDICT_", s.text(t, d, "verdict", "unspecified"), attunev1.Verdict(0))}
	case "lapsed":
		return Lapsed{Changes: strings.Fields(strings.ReplaceAll(s.text(t, d, "changes", "c1"), ",", " ")), Reason: reason}
	case "adopt":
		return Adopt{Held{
			ID: s.text(t, d, "change", "old-c1"), Process: s.number(t, d, "process", 1), Knob: s.text(t, d, "knob", "k1"),
			Tunlet: tunlet, Action: "set s.k1=1", Kept: true, Gain: 4,
		}}
	case "known":
		return Knowledge{[]Known{{
			Advice: s.text(t, d, "advice", ""), Gain: float64(s.number(t, d, "gain", 0)),
			Kept: int(s.number(t, d, "kept", 1)), Undone: int(s.number(t, d, "undone", 0)),
		}}}
	case "tick":
		return Tick{}
	case "finish":
		return Finish{Keep: d.HasArg("keep")}
	}
	t.Fatalf("unknown command %q", d.Cmd)
	return nil
}

func (s *script) describe(t *testing.T, d *datadriven.TestData) *attunev1.DescribeResponse {
	info := &attunev1.DescribeResponse{
		Name:      s.text(t, d, "name", "t"),
		MaxTries:  uint32(s.number(t, d, "max-tries", 0)),
		Priority:  int32(s.number(t, d, "priority", 0)),
		Objective: &attunev1.Objective{Name: "speed", LowerIsBetter: d.HasArg("lower")},
	}
	for _, name := range []string{"k1", "k2"} {
		info.Knobs = append(info.Knobs, &attunev1.Knob{
			Name:   name,
			Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: "s." + name}}},
			Min:    &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: 0}},
			Max:    &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: 100}},
		})
	}
	return info
}

// proposal reads one change per input line: knob process value.
func (s *script) proposal(t *testing.T, d *datadriven.TestData, id string) *attunev1.Proposal {
	p := &attunev1.Proposal{
		Id: id, Scope: s.text(t, d, "scope", "app"), Reason: "trouble",
		PredictedGain: float64(s.number(t, d, "predicted", 4)), Replaces: s.text(t, d, "replaces", ""),
	}
	if d.HasArg("each") {
		p.ProcessScopes = map[uint64]string{}
	}
	for line := range strings.Lines(d.Input) {
		var name string
		var process uint64
		var value int64
		if _, err := fmt.Sscan(line, &name, &process, &value); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if p.ProcessScopes != nil {
			p.ProcessScopes[process] = fmt.Sprint("p", process)
		}
		p.Changes = append(p.Changes, &attunev1.Change{
			Knob: name, Process: process,
			Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{
				Name: "s." + name, Value: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: value}},
			}}},
		})
	}
	return p
}

func (s *script) result(t *testing.T, d *datadriven.TestData, reason string) Event {
	r := &attunev1.ActionResult{
		ChangeId: s.text(t, d, "change", "c1"), Reason: reason,
		Outcome: enum(t, attunev1.Outcome_value, "OUTCOME_", s.text(t, d, "outcome", "applied"), attunev1.Outcome(0)),
	}
	for name, value := range map[string]**attunev1.Value{"old": &r.OldValue, "new": &r.NewValue} {
		if d.HasArg(name) {
			*value = &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: int64(s.number(t, d, name, 0))}}
		}
	}
	return Result{At: s.now, Result: r}
}

// samples steps one sample per value, from the given time on every 50 ms or as
// it says.
func (s *script) samples(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	n, every := int(s.number(t, d, "times", 1)), s.duration(t, d, "every", 50*time.Millisecond)
	for range n {
		for _, value := range s.values(t, d, "values") {
			out.WriteString(s.step(Sample{Tunlet: s.text(t, d, "tunlet", "t"), Scope: s.text(t, d, "scope", "app"), Value: value, At: s.now}))
			s.now += every
		}
	}
	return out.String()
}

// play is an application whose objectives, of all tunlets and scopes that are
// given, have the values given by off while no change is in force that they judge,
// and those given by on while one is, with a controller that
// answers at once, and a tunlet that gives the verdict of the argument verdict. The
// owner's objective has the values given by own-off and own-on, where these are given.
// What was asked of the controller is not shown.
func (s *script) play(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	until, every := s.duration(t, d, "until", 0), s.duration(t, d, "every", 50*time.Millisecond)
	tunlets, scopes := s.words(d, "tunlet", "t"), s.words(d, "scope", "app")
	opinion := enum(t, attunev1.Verdict_value, "VERDICT_", s.text(t, d, "verdict", "unspecified"), attunev1.Verdict(0))
	off, on := s.values(t, d, "off"), s.values(t, d, "on")
	var ownOff, ownOn []float64
	if d.HasArg("own-off") {
		ownOff, ownOn = s.values(t, d, "own-off"), s.values(t, d, "own-on")
	}
	for i := 0; s.now+every <= until; i++ {
		s.now += every
		for _, scope := range scopes {
			value := off[i%len(off)]
			if s.changed(scope) {
				value = on[i%len(on)]
			}
			for _, tunlet := range tunlets {
				out.WriteString(s.answered(Sample{Tunlet: tunlet, Scope: scope, Value: value, At: s.now}, opinion))
			}
		}
		own := ownOff
		if slices.ContainsFunc(scopes, s.changed) {
			own = ownOn
		}
		if len(own) > 0 {
			out.WriteString(s.answered(Measured{Value: own[i%len(own)], At: s.now}, opinion))
		}
	}
	return out.String()
}

// answered steps an event and the answers to what the core commands.
func (s *script) answered(ev Event, opinion attunev1.Verdict) string {
	var out strings.Builder
	for events := []Event{ev}; len(events) > 0; events = events[1:] {
		for _, cmd := range s.core.Step(s.now, events[0]) {
			answers := s.answers(cmd, opinion)
			if len(answers) == 0 {
				fmt.Fprintf(&out, "%v %s\n", s.now, describe(cmd))
			}
			events = append(events, answers...)
		}
	}
	return out.String()
}

// words reads a list of words.
func (s *script) words(d *datadriven.TestData, key, def string) []string {
	if arg, ok := d.Arg(key); ok {
		return arg.Vals
	}
	return []string{def}
}

// changed reports whether something is in force that a scope is to judge.
func (s *script) changed(scope string) bool {
	for _, p := range s.core.Proposals() {
		for _, ch := range p.GetChanges() {
			if p.GetScope() == scope && ch.GetOutcome() == attunev1.Outcome_OUTCOME_APPLIED {
				return true
			}
		}
	}
	return false
}

// answers are those of a controller and a tunlet that do as they are told.
func (s *script) answers(cmd Command, opinion attunev1.Verdict) (out []Event) {
	switch cmd := cmd.(type) {
	case Apply:
		for _, ch := range cmd.Changes {
			out = append(out, Result{At: s.now, Result: resultOf(ch.GetId(), attunev1.Outcome_OUTCOME_APPLIED)})
		}
		return append(out, RequestDone{Request: cmd.Request})
	case Undo:
		for _, id := range cmd.Changes {
			out = append(out, Result{At: s.now, Result: resultOf(id, attunev1.Outcome_OUTCOME_UNDONE)})
		}
		return append(out, RequestDone{Request: cmd.Request})
	case AskEvaluate:
		return []Event{Verdict{Tunlet: cmd.Tunlet, Proposal: cmd.Request.GetProposalId(), Verdict: opinion}}
	}
	return nil
}

// values reads a list of numbers.
func (s *script) values(t *testing.T, d *datadriven.TestData, key string) (out []float64) {
	arg, ok := d.Arg(key)
	if !ok {
		t.Fatalf("%s: no %s", d.Pos, key)
	}
	for _, v := range arg.Vals {
		value, err := strconv.ParseFloat(v, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, value)
	}
	return out
}

// ticks lets time pass in steps of 50 ms, with the answers to what the core commands where
// it says so.
func (s *script) ticks(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	until := s.duration(t, d, "until", 0)
	for s.now < until {
		s.now += 50 * time.Millisecond
		if d.HasArg("answered") {
			out.WriteString(s.answered(Tick{}, attunev1.Verdict_VERDICT_UNSPECIFIED))
			continue
		}
		out.WriteString(s.step(Tick{}))
	}
	return out.String()
}

// step steps the core and renders what it commands.
func (s *script) step(ev Event) string {
	var out strings.Builder
	for _, cmd := range s.core.Step(s.now, ev) {
		fmt.Fprintf(&out, "%v %s\n", s.now, describe(cmd))
	}
	return out.String()
}

// describe renders one command.
func describe(cmd Command) string {
	switch c := cmd.(type) {
	case Apply:
		var ids []string
		for _, ch := range c.Changes {
			ids = append(ids, fmt.Sprintf("%s(%s@%d)", ch.GetId(), attunev1.ActionText(ch.GetAction()), ch.GetProcess()))
		}
		return fmt.Sprintf("APPLY %s %s", c.Request, strings.Join(ids, " "))
	case Undo:
		return fmt.Sprintf("UNDO %s %s", c.Request, strings.Join(c.Changes, " "))
	case AskEvaluate:
		return fmt.Sprintf("ASK %s %s suggested=%s", c.Tunlet, c.Request.GetProposalId(), c.Request.GetSuggested())
	case Notify:
		text := fmt.Sprintf("notify %s %s %s %q", c.Tunlet, c.Request.GetProposalId(), c.Request.GetState(), c.Request.GetReason())
		for _, ch := range c.Request.GetEarlier().GetChanges() {
			text += fmt.Sprintf(" %s@%d", ch.GetKnob(), ch.GetProcess())
		}
		return text
	case Record:
		if !slices.Contains(RecordKinds(), c.Kind) {
			return fmt.Sprintf("record of a kind that is none: %s", c.Kind)
		}
		return fmt.Sprintf("record %s %s/%s %q", c.Kind, c.Proposal.GetTunlet(), c.Proposal.GetId(), c.Reason)
	}
	return fmt.Sprintf("%T", cmd)
}

// held prints what is to stay in force.
func (s *script) held() string {
	var out strings.Builder
	for _, h := range s.core.Held() {
		fmt.Fprintf(&out, "%s %s@%d by %s kept=%v gain=%.3g: %s\n", h.ID, h.Knob, h.Process, h.Tunlet, h.Kept, h.Gain, h.Action)
	}
	return out.String()
}

func (s *script) proposals() string { return render(s.core.Proposals()) }

// render prints proposals and their changes.
func render(views []*attunev1.RecordedProposal) string {
	var out strings.Builder
	for _, p := range views {
		fmt.Fprintf(&out, "%s/%s %s advice=%s times=%d: %s\n", p.GetTunlet(), p.GetId(), p.GetState(), p.GetAdvice(), p.GetTimes(), p.GetReason())
		for _, ch := range p.GetChanges() {
			spec := ch.GetSpec()
			fmt.Fprintf(&out, "  %s %s@%d %s applied=%v undone=%v", spec.GetId(), spec.GetKnob(), spec.GetProcess(), ch.GetOutcome(),
				time.Duration(ch.GetAppliedNanos()), time.Duration(ch.GetUndoneNanos()))
			if old := ch.GetResult().GetOldValue(); old != nil {
				fmt.Fprintf(&out, " old=%d: %s", old.GetInteger(), ch.GetResult().GetReason())
			}
			out.WriteByte('\n')
		}
	}
	return out.String()
}

func (s *script) text(t *testing.T, d *datadriven.TestData, key, def string) string {
	d.MaybeScanArgs(t, key, &def)
	return def
}

func (s *script) number(t *testing.T, d *datadriven.TestData, key string, def uint64) uint64 {
	d.MaybeScanArgs(t, key, &def)
	return def
}

func (s *script) duration(t *testing.T, d *datadriven.TestData, key string, def time.Duration) time.Duration {
	var text string
	if !d.MaybeScanArgs(t, key, &text) {
		return def
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// enum looks up an enumeration value by its lower-case short name.
func enum[E ~int32](t *testing.T, values map[string]int32, prefix, name string, _ E) E {
	v, ok := values[prefix+strings.ToUpper(name)]
	if !ok {
		t.Fatalf("unknown %s%s", prefix, name)
	}
	return E(v)
}
