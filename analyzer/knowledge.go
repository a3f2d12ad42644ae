// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/session"
	"github.com/attune-hpc/attune/analyzer/store"
)

// Knowledge is what earlier sessions have learnt; a *store.Store. Its methods may
// be called by several goroutines.
type Knowledge interface {
	// Known returns what is known about an application.
	Known(ctx context.Context, application string) ([]store.Advice, error)
	// Record adds what a session has learnt.
	Record(ctx context.Context, trials []store.Trial) error
}

// knowledgeTimeout bounds each use of the knowledge: it is a hint.
const knowledgeTimeout = 3 * time.Second

// known asks for what earlier sessions have learnt about an application. Without
// an answer nothing is known.
func (a *Analyzer) known(application string) (out []core.Known) {
	ctx, cancel := context.WithTimeout(context.Background(), knowledgeTimeout)
	defer cancel()
	all, err := a.cfg.Knowledge.Known(ctx, application)
	if err != nil {
		a.log.Warn("nothing of earlier runs is known", "error", err)
	}
	for _, advice := range all {
		out = append(out, core.Known{
			Advice: advice.ID, Tunlet: advice.Tunlet, Gain: advice.Gain, Kept: advice.Kept, Undone: advice.Undone,
		})
	}
	return out
}

// learn records what the session has learnt. The report does not depend on it.
func (a *Analyzer) learn(ctx context.Context) {
	if a.cfg.Knowledge == nil {
		return
	}
	trials, err := a.session.Trials(ctx)
	if err == nil && len(trials) > 0 {
		ctx, cancel := context.WithTimeout(ctx, knowledgeTimeout)
		defer cancel()
		err = a.cfg.Knowledge.Record(ctx, lessons(trials, time.Now()))
	}
	if err != nil {
		a.log.Warn("what this run has learnt is not kept", "error", err)
	}
}

// lessons returns the trials as they are kept: of several with one result, for
// many processes of a program, the last one.
func lessons(trials []session.Trial, at time.Time) []store.Trial {
	var out []store.Trial
	for _, t := range trials {
		one := lesson(t, at)
		same := slices.IndexFunc(out, func(o store.Trial) bool {
			return o.Advice == one.Advice && o.Application == one.Application && o.Result == one.Result
		})
		if same >= 0 {
			out[same] = one
			continue
		}
		out = append(out, one)
	}
	return out
}

func lesson(t session.Trial, at time.Time) store.Trial {
	out := store.Trial{
		Advice: t.AdviceID, Application: t.Application, Executable: t.Executable, Tunlet: t.Tunlet, Why: t.Why,
		Predicted: t.PredictedGain, Confidence: t.Confidence, Result: store.Given, At: at,
	}
	switch {
	case t.State == core.StateKept:
		out.Result = store.Kept
	case t.Useless:
		out.Result = store.Undone
	}
	if t.Judgement != nil && !math.IsInf(t.Judgement.Gain, 0) && !math.IsNaN(t.Judgement.Gain) {
		out.Gain = t.Judgement.Gain
	}
	first := t.Changes[0].Process
	for _, ch := range t.Changes {
		if ch.Process == first { // the others differ in the process only
			out.Changes = append(out.Changes, proto.CloneOf(ch.Spec))
		}
	}
	return out
}
