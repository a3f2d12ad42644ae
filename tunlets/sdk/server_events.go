// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// HandleEvents delivers samples, then aggregates, then records; calls come in the
// order that package feed states.
func (s *server) HandleEvents(ctx context.Context, r *attunev1.HandleEventsRequest) (out *attunev1.HandleEventsResponse, err error) {
	err = s.call(ctx, "HandleEvents", func() error {
		reaction := &attunev1.Reaction{}
		heard := s.samples(r, reaction)
		heard = s.aggregates(r, reaction) || heard
		records, err := s.records(r, reaction)
		if err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		if !heard && !records {
			return unimplemented("HandleSamples, HandleAggregates or HandleRecords")
		}
		out = &attunev1.HandleEventsResponse{Reaction: reaction}
		return nil
	})
	return out, err
}

func (s *server) samples(r *attunev1.HandleEventsRequest, reaction *attunev1.Reaction) bool {
	o, ok := s.tunlet.(SampleHandler)
	if ok && r.GetSamples() != nil {
		h, _ := s.host(r.GetSamples().GetUnixNano())
		h.reaction = reaction
		o.HandleSamples(h, samplesFrom(r.GetSamples()))
	}
	return ok
}

func (s *server) aggregates(r *attunev1.HandleEventsRequest, reaction *attunev1.Reaction) bool {
	o, ok := s.tunlet.(AggregateHandler)
	if ok && r.GetToUnixNano() > 0 {
		h, _ := s.host(r.GetToUnixNano())
		h.reaction = reaction
		a := aggregatesFrom(r, s.ledger.signed)
		a.Unknown = s.ledger.unknown(a)
		o.HandleAggregates(h, a)
	}
	return ok
}

func (s *server) records(r *attunev1.HandleEventsRequest, reaction *attunev1.Reaction) (bool, error) {
	o, ok := s.tunlet.(RecordHandler)
	if !ok {
		return false, nil
	}
	for _, n := range r.GetRecords() {
		records, err := recordsFrom(n, s.names)
		if err != nil {
			return true, err
		}
		h, _ := s.host(0)
		h.reaction = reaction
		o.HandleRecords(h, records)
	}
	return true, nil
}

// PointChanged is heard for every tunlet: by it the server knows the names of points in
// records, and what is missing from aggregates.
func (s *server) PointChanged(ctx context.Context, r *attunev1.PointChangedRequest) (out *attunev1.PointChangedResponse, err error) {
	err = s.call(ctx, "PointChanged", func() error {
		if index := r.GetStatus().GetPoint(); index > 0 {
			if s.names == nil {
				s.names = map[uint32]string{}
			}
			s.names[index] = r.GetPointId()
		}
		s.ledger.changed(r.GetPointId(), r.GetStatus())
		h, reaction := s.host(0)
		out = &attunev1.PointChangedResponse{Reaction: reaction}
		o, ok := s.tunlet.(PointObserver)
		switch st := r.GetStatus(); {
		case ok:
			o.PointChanged(h, pointChangeFrom(r))
		case st.GetState() == attunev1.PointState_POINT_STATE_REFUSED:
			h.remarkOnce(Handle(st.GetProcess()), "measure point %q cannot be placed: %s", r.GetPointId(), st.GetReason())
		}
		return nil
	})
	return out, err
}

func (s *server) Tick(ctx context.Context, r *attunev1.TickRequest) (out *attunev1.TickResponse, err error) {
	err = s.call(ctx, "Tick", func() error {
		o, ok := s.tunlet.(Ticker)
		if !ok {
			return unimplemented("Tick")
		}
		h, reaction := s.host(r.GetUnixNano())
		o.Tick(h)
		out = &attunev1.TickResponse{Reaction: reaction}
		return nil
	})
	return out, err
}

func (s *server) Evaluate(ctx context.Context, r *attunev1.EvaluateRequest) (out *attunev1.EvaluateResponse, err error) {
	err = s.call(ctx, "Evaluate", func() error {
		o, ok := s.tunlet.(Evaluator)
		if !ok {
			return unimplemented("Evaluate")
		}
		verdict, reason := o.Evaluate(evaluationFrom(r))
		out = &attunev1.EvaluateResponse{Verdict: attunev1.Verdict(verdict), Reason: reason}
		return nil
	})
	return out, err
}

func (s *server) ProposalChanged(ctx context.Context, r *attunev1.ProposalChangedRequest) (out *attunev1.ProposalChangedResponse, err error) {
	err = s.call(ctx, "ProposalChanged", func() error {
		o, ok := s.tunlet.(ProposalObserver)
		if !ok {
			return unimplemented("ProposalChanged")
		}
		h, reaction := s.host(0)
		o.ProposalChanged(h, proposalChangeFrom(r))
		out = &attunev1.ProposalChangedResponse{Reaction: reaction}
		return nil
	})
	return out, err
}
