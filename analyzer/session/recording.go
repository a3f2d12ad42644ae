// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// write gives a frame to who records the session. Its time never runs backwards.
func (s *Session) write(f *attunev1.RecordingFrame) {
	if !s.recording() {
		return
	}
	s.recordedAt = max(s.recordedAt, s.now())
	f.AtNanos = int64(s.recordedAt)
	s.cfg.Record(f)
}

// recording says whether somebody records the session.
func (s *Session) recording() bool { return s.cfg.Record != nil }

func (s *Session) writeHeader() {
	s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Header{Header: &attunev1.RecordingHeader{
		Version: s.cfg.Version, StartUnixNano: s.start.UnixNano(), Application: s.application(),
	}}})
}

// application is what tunlets are told of the application.
func (s *Session) application() *attunev1.Application {
	return &attunev1.Application{
		SessionId: s.cfg.ID, Command: slices.Clone(s.cfg.Command), Mode: s.cfg.Core.Mode.String(), TickNanos: int64(s.cfg.Tick),
	}
}

func (s *Session) writeProcess(info *attunev1.Process, update bool) {
	s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessStarted{
		ProcessStarted: &attunev1.ProcessStartedRequest{Process: info, Update: update},
	}})
}

func (s *Session) writeEnd(ended *attunev1.ProcessEnded) {
	s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessEnded{ProcessEnded: ended}})
}

func (s *Session) writeSamples(b *attunev1.SampleBatch) {
	if len(b.GetSamples()) > 0 {
		s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Samples{Samples: b}})
	}
}

func (s *Session) writeAggregates(from, to int64, list []*attunev1.Aggregate) {
	if len(list) > 0 {
		s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Aggregates{
			Aggregates: &attunev1.AggregateBatch{FromUnixNano: from, ToUnixNano: to, Aggregates: list},
		}})
	}
}

func (s *Session) writeRecords(r *attunev1.NamedRecords) {
	s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Records{Records: r}})
}

func (s *Session) writePoint(p *point) {
	s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Point{
		Point: &attunev1.AddPoint{Point: p.index, Spec: p.spec},
	}})
}

func (s *Session) writePointEnd(p *point) {
	s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_PointEnd{
		PointEnd: &attunev1.RemovePoint{Point: p.index},
	}})
}

func (s *Session) writePointStatus(st *attunev1.PointStatus) {
	s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_PointStatus{PointStatus: st}})
}

// writeReaction writes what a tunlet wants, if it wants anything: most ticks
// lead to nothing.
func (s *Session) writeReaction(t *tunlet, r *attunev1.Reaction) {
	if !s.recording() || proto.Size(r) == 0 {
		return
	}
	s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Reaction{
		Reaction: &attunev1.RecordedReaction{Tunlet: t.name, Reaction: r},
	}})
}

func (s *Session) writeTick() {
	s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Tick{Tick: &attunev1.RecordedTick{}}})
}

// writeEvent writes what the core is told and nobody else has written.
func (s *Session) writeEvent(ev core.Event) {
	if !s.recording() {
		return
	}
	switch ev := ev.(type) {
	case core.TunletReady:
		s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Tunlet{
			Tunlet: &attunev1.RecordedTunlet{Info: ev.Info},
		}})
	case core.TunletGone:
		s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_TunletEnd{
			TunletEnd: &attunev1.RecordedTunletEnd{Tunlet: ev.Tunlet, Reason: ev.Reason, Final: ev.Final},
		}})
	case core.Result:
		s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Result{Result: ev.Result}})
	case core.Verdict:
		s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Verdict{Verdict: &attunev1.RecordedVerdict{
			Tunlet: ev.Tunlet, ProposalId: ev.Proposal, Verdict: ev.Verdict, Reason: ev.Reason,
		}}})
	}
}

// writeCommand writes what the core commands.
func (s *Session) writeCommand(cmd core.Command) {
	if !s.recording() {
		return
	}
	switch cmd := cmd.(type) {
	case core.Apply:
		s.writeRequest(&attunev1.RecordedRequest{Id: cmd.Request, Request: &attunev1.RecordedRequest_Apply{
			Apply: &attunev1.ApplyChanges{Changes: cmd.Changes},
		}})
	case core.Undo:
		s.writeRequest(&attunev1.RecordedRequest{Id: cmd.Request, Request: &attunev1.RecordedRequest_Undo{
			Undo: &attunev1.UndoChanges{ChangeIds: cmd.Changes},
		}})
	case core.AskEvaluate:
		s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Evaluation{
			Evaluation: &attunev1.RecordedEvaluation{Tunlet: cmd.Tunlet, Request: cmd.Request},
		}})
	case core.Notify:
		s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Notice{
			Notice: &attunev1.RecordedNotice{Tunlet: cmd.Tunlet, Request: cmd.Request},
		}})
	case core.Record:
		s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Decision{Decision: &attunev1.RecordedDecision{
			Kind: cmd.Kind, Tunlet: cmd.Tunlet, ProposalId: cmd.Proposal, Reason: cmd.Reason,
		}}})
	}
}

func (s *Session) writeRequest(r *attunev1.RecordedRequest) {
	s.write(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Request{Request: r}})
}
