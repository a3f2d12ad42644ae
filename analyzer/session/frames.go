// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ownName is whose remarks are that no tunlet makes.
const ownName = "attune"

// Sink takes what happens in a session, frame by frame: the first one in New, the
// others in the loop. Take does not wait, does not change the frame, and keeps
// nothing of it but what it copies.
type Sink interface {
	Take(*attunev1.RecordingFrame)
}

// teller tells the sinks what happens, in frames.
type teller struct {
	clock *clock
	sinks []Sink
	// others are the sinks that come and go.
	others iter.Seq[Sink]
	at     time.Duration // of the last frame
}

// emit gives a frame to the sinks. Its time never runs backwards.
func (t *teller) emit(f *attunev1.RecordingFrame) {
	t.at = max(t.at, t.clock.now())
	f.AtNanos = int64(t.at)
	for _, sink := range t.sinks {
		sink.Take(f)
	}
	for sink := range t.others {
		sink.Take(f)
	}
}

func (t *teller) emitController(id string, state attunev1.ControllerState, text string) {
	t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Controller{
		Controller: &attunev1.RecordedController{Controller: id, State: state, Text: text},
	}})
}

// emitStatus tells what a controller says of itself.
func (t *teller) emitStatus(controller string, status *attunev1.ControllerStatus) {
	t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Status{
		Status: &attunev1.RecordedStatus{Controller: controller, Status: status},
	}})
}

func (t *teller) emitRemark(from string, process uint64, text string) {
	t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Remark{
		Remark: &attunev1.RecordedRemark{From: from, Process: process, Text: text},
	}})
}

func (t *teller) emitSleeper(tunlet string, woken bool, process uint64, text string) {
	t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Sleeper{
		Sleeper: &attunev1.RecordedSleeper{Tunlet: tunlet, Woken: woken, Process: process, Text: text},
	}})
}

// emitAsk tells what became of a wish for a measure point.
func (t *teller) emitAsk(what *attunev1.RecordedAsk) {
	t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Asked{Asked: what}})
}

// emitReaction tells what a tunlet wants, if it wants anything: most ticks lead to
// nothing.
func (t *teller) emitReaction(tunlet string, r *attunev1.Reaction) {
	if len(r.GetAddPoints())+len(r.GetRemovePoints())+len(r.GetProposals())+len(r.GetWithdrawals())+len(r.GetObjectives())+
		len(r.GetRemarks())+len(r.GetInterests())+len(r.GetWants()) == 0 {
		return
	}
	t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Reaction{
		Reaction: &attunev1.RecordedReaction{Tunlet: tunlet, Reaction: r},
	}})
}

// emitEvent tells what the core is told and no other frame says.
func (t *teller) emitEvent(ev core.Event) {
	switch ev := ev.(type) {
	case core.TunletReady:
		t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Tunlet{
			Tunlet: &attunev1.RecordedTunlet{Info: ev.Info},
		}})
	case core.TunletGone:
		t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_TunletEnd{
			TunletEnd: &attunev1.RecordedTunletEnd{Tunlet: ev.Tunlet, Reason: ev.Reason},
		}})
	case core.Measured:
		t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Measured{
			Measured: &attunev1.RecordedMeasured{Value: ev.Value, EndNanos: int64(ev.At)},
		}})
	case core.Result:
		t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Result{Result: ev.Result}})
	case core.Verdict:
		t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Verdict{Verdict: &attunev1.RecordedVerdict{
			Tunlet: ev.Tunlet, ProposalId: ev.Proposal, Verdict: ev.Verdict, Reason: ev.Reason,
		}}})
	}
}

// emitCommand tells what the core commands.
func (t *teller) emitCommand(cmd core.Command) {
	switch cmd := cmd.(type) {
	case core.Apply:
		t.emitRequest(&attunev1.RecordedRequest{Id: cmd.Request, Request: &attunev1.RecordedRequest_Apply{
			Apply: &attunev1.ApplyChanges{Changes: cmd.Changes},
		}})
	case core.Undo:
		t.emitRequest(&attunev1.RecordedRequest{Id: cmd.Request, Request: &attunev1.RecordedRequest_Undo{
			Undo: &attunev1.UndoChanges{ChangeIds: cmd.Changes},
		}})
	case core.AskEvaluate:
		t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Evaluation{
			Evaluation: &attunev1.RecordedEvaluation{Tunlet: cmd.Tunlet, Request: cmd.Request},
		}})
	case core.Notify:
		t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Notice{
			Notice: &attunev1.RecordedNotice{Tunlet: cmd.Tunlet, Request: cmd.Request},
		}})
	case core.Record:
		t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Decision{Decision: &attunev1.RecordedDecision{
			Kind: cmd.Kind, Tunlet: cmd.Proposal.GetTunlet(), ProposalId: cmd.Proposal.GetId(), Reason: cmd.Reason,
			Proposal: cmd.Proposal,
		}}})
	}
}

func (t *teller) emitRequest(r *attunev1.RecordedRequest) {
	t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Request{Request: r}})
}
