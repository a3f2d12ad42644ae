// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/fold"
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

// learner is a session's way to the knowledge.
type learner struct {
	knowledge Knowledge // nil: nothing is learnt
	// owned: what this session measures is the owner's objective. Gains of that are no
	// hint to sessions with another one, or none.
	owned bool
	log   *slog.Logger
}

// known asks for what earlier sessions have learnt about an application. Without
// an answer nothing is known.
func (l learner) known(application string) (out []core.Known) {
	ctx, cancel := context.WithTimeout(context.Background(), knowledgeTimeout)
	defer cancel()
	all, err := l.knowledge.Known(ctx, application)
	if err != nil {
		l.log.Warn("nothing of earlier runs is known", "error", err)
	}
	for _, advice := range all {
		out = append(out, core.Known{
			Advice: advice.ID, Tunlet: advice.Tunlet, Gain: advice.Gain, Kept: advice.Kept, Undone: advice.Undone,
		})
	}
	return out
}

// learn records what a session has learnt. Its report does not depend on it.
func (l learner) learn(ctx context.Context, s *session.Session, account *fold.Account) {
	if l.knowledge == nil || l.owned {
		return
	}
	trials, err := session.View(ctx, s, func(time.Duration) []fold.Trial { return account.Trials() })
	if err == nil && len(trials) > 0 {
		ctx, cancel := context.WithTimeout(ctx, knowledgeTimeout)
		defer cancel()
		err = l.knowledge.Record(ctx, lessons(trials, time.Now()))
	}
	if err != nil {
		l.log.Warn("what this run has learnt is not kept", "error", err)
	}
}

// lessons returns the trials as they are kept: of several with one result, for
// many processes of a program, the last one.
func lessons(trials []fold.Trial, at time.Time) []store.Trial {
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

func lesson(t fold.Trial, at time.Time) store.Trial {
	out := store.Trial{
		Advice: t.GetAdvice(), Application: t.Application, Executable: t.Executable, Tunlet: t.GetTunlet(), Why: t.GetWhy(),
		Predicted: t.GetPredictedGain(), Confidence: t.GetConfidence(), Result: store.Given, At: at,
	}
	switch {
	case t.Kept():
		out.Result = store.Kept
	case t.GetUseless():
		out.Result = store.Undone
	}
	if gain := t.GetJudgement().GetGain(); !math.IsInf(gain, 0) && !math.IsNaN(gain) {
		out.Gain = gain
	}
	first := t.GetChanges()[0].GetSpec().GetProcess()
	for _, ch := range t.GetChanges() {
		if ch.GetSpec().GetProcess() == first { // the others differ in the process only
			out.Changes = append(out.Changes, ch.GetSpec())
		}
	}
	return out
}
