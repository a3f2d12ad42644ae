// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// frame does what a frame says. What other tunlets did is none of this one's
// business, and what its own namesake did only where it tells what became of a
// proposal.
func (d *driver) frame(f *attunev1.RecordingFrame) {
	switch k := f.GetWhat().(type) {
	case *attunev1.RecordingFrame_ProcessStarted:
		d.processStarted(k.ProcessStarted)
	case *attunev1.RecordingFrame_ProcessEnded:
		d.processEnded(k.ProcessEnded)
	case *attunev1.RecordingFrame_Sleeper:
		d.needed(k.Sleeper)
	case *attunev1.RecordingFrame_Samples:
		d.samples(k.Samples)
	case *attunev1.RecordingFrame_Aggregates:
		if own := d.feed.Aggregates(k.Aggregates); own != nil {
			call(d, d.tunlet.HandleEvents, own)
		}
	case *attunev1.RecordingFrame_Records:
		if own, _ := d.feed.Records(k.Records); own != nil {
			call(d, d.tunlet.HandleEvents, &attunev1.HandleEventsRequest{Records: []*attunev1.NamedRecords{own}})
		}
	case *attunev1.RecordingFrame_Point:
		d.points.appear(k.Point)
	case *attunev1.RecordingFrame_PointEnd:
		d.points.disappear(k.PointEnd.GetPoint())
	case *attunev1.RecordingFrame_PointStatus:
		d.pointStatus(k.PointStatus)
	case *attunev1.RecordingFrame_Reaction:
		if k.Reaction.GetTunlet() == d.out.tunlet {
			d.recordedReaction(k.Reaction.GetReaction())
		}
	case *attunev1.RecordingFrame_Evaluation:
		if k.Evaluation.GetTunlet() == d.out.tunlet {
			d.evaluate(k.Evaluation.GetRequest())
		}
	case *attunev1.RecordingFrame_Notice:
		if k.Notice.GetTunlet() == d.out.tunlet {
			d.notice(k.Notice.GetRequest())
		}
	case *attunev1.RecordingFrame_Tick:
		if d.awake {
			call(d, d.tunlet.Tick, &attunev1.TickRequest{UnixNano: d.start.Add(d.now).UnixNano()})
		}
	}
}

func (d *driver) processStarted(r *attunev1.ProcessStartedRequest) {
	id := r.GetProcess().GetHandle()
	if d.processes[id] == nil {
		d.order = append(d.order, id)
	}
	d.processes[id] = r.GetProcess()
	d.wakes.Process(id, r.GetProcess().GetObjects())
	if d.awake {
		call(d, d.tunlet.ProcessStarted, r)
	}
}

func (d *driver) processEnded(ended *attunev1.ProcessEnded) {
	id := ended.GetProcess()
	d.order = slices.DeleteFunc(d.order, func(o uint64) bool { return o == id })
	d.wakes.Forget(id)
	d.feed.Forget(id)
	d.points.forget(id)
	if d.awake {
		call(d, d.tunlet.ProcessEnded, &attunev1.ProcessEndedRequest{Ended: ended})
	}
}

// needed starts a tunlet that the recorded session started for another reason than a
// sample, such as what earlier runs had learnt. By samples it is started where its own
// conditions hold, which may be others than those of the tunlet that was recorded.
func (d *driver) needed(s *attunev1.RecordedSleeper) {
	if s.GetTunlet() == d.out.tunlet && s.GetWoken() && s.GetProcess() == 0 && !d.awake {
		d.begin(s.GetText())
	}
}

// samples hands samples over, or starts the tunlet by them.
func (d *driver) samples(b *attunev1.SampleBatch) {
	if !d.awake {
		woken, before := d.wakes.Round(b)
		if len(woken) == 0 {
			return
		}
		d.begin(fmt.Sprintf("%s has %s", d.out.process(woken[0].Process), woken[0].Reason))
		for _, earlier := range before {
			call(d, d.tunlet.HandleEvents, &attunev1.HandleEventsRequest{Samples: earlier})
		}
	}
	for _, own := range d.feed.Samples(b) {
		call(d, d.tunlet.HandleEvents, own)
	}
}

func (d *driver) pointStatus(st *attunev1.PointStatus) {
	d.points.setStatus(st)
	for _, id := range d.feed.Names(st.GetPoint(), st.GetProcess()) {
		d.pointChanged(id, st)
	}
}

func (d *driver) pointChanged(id string, st *attunev1.PointStatus) {
	if st.GetState() == attunev1.PointState_POINT_STATE_REFUSED {
		d.out.line(d.now, "is refused %q in %s: %s", id, d.out.process(st.GetProcess()), st.GetReason())
	}
	call(d, d.tunlet.PointChanged, &attunev1.PointChangedRequest{PointId: id, Status: st})
}

// recordedReaction brings the fates of recorded proposals up to date.
func (d *driver) recordedReaction(r *attunev1.Reaction) {
	for _, p := range r.GetProposals() {
		d.fates[p.GetId()] = d.outline.proposals[d.made]
		d.made++
	}
}

// fateOf returns the fate that a recorded id of a proposal means, and what of
// the id goes beyond it: a part that was withdrawn alone has a number.
func (d *driver) fateOf(id string) (f *fate, part string) {
	if f := d.fates[id]; f != nil {
		return f, ""
	}
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		return d.fates[id[:i]], id[i:]
	}
	return nil, ""
}

// notice tells what became of a proposal, as soon as it has been made.
func (d *driver) notice(r *attunev1.ProposalChangedRequest) {
	f, part := d.fateOf(r.GetProposalId())
	switch {
	case f == nil:
	case f.as == "":
		f.told = append(f.told, r)
	default:
		d.tell(f.as+part, r.GetState(), r.GetReason(), r.GetResults())
	}
}

func (d *driver) tell(id string, state attunev1.ProposalState, reason string, results []*attunev1.ActionResult) {
	d.out.state(d.now, id, state, reason)
	call(d, d.tunlet.ProposalChanged, &attunev1.ProposalChangedRequest{ProposalId: id, State: state, Reason: reason, Results: results})
}

// evaluate asks for a verdict, where the proposal was made again.
func (d *driver) evaluate(r *attunev1.EvaluateRequest) {
	f, part := d.fateOf(r.GetProposalId())
	if f == nil || f.as == "" {
		return
	}
	ask := &attunev1.EvaluateRequest{ProposalId: f.as + part, Before: r.GetBefore(), After: r.GetAfter(), Suggested: r.GetSuggested()}
	d.calls = append(d.calls, func() error {
		ctx, cancel := context.WithTimeout(d.ctx, callTimeout)
		defer cancel()
		verdict, err := d.tunlet.Evaluate(ctx, ask)
		if err != nil && status.Code(err) != codes.Unimplemented {
			return fmt.Errorf("the tunlet answers %T: %w", ask, err)
		}
		d.out.verdict(d.now, ask, verdict)
		return nil
	})
}

// seconds is a time as the transcript has it.
func seconds(t time.Duration) string { return fmt.Sprintf("%8.3f", t.Seconds()) }
