// SPDX-License-Identifier: Apache-2.0

package perprocess

import (
	"cmp"
	"reflect"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Problem is what a tunlet knows of its problem in one process. It keeps nothing of processes.
// If it is a [sdk.Configurer] too, it is configured, and if it is a [Chooser], it is asked which
// processes matter.
type Problem interface {
	sdk.Tunlet
	// Progress is the objective between two samples, which follow each other; false: it is
	// not known.
	Progress(latest sdk.Span) (value float64, known bool)
	// Symptom says whether the process has the problem, by its signals over the time given
	// to New. False also if signals that it needs are missing.
	Symptom(recent sdk.Span) bool
	// Propose is the change against the symptom; false: none at present. ID, Scope and the
	// process of changes that name none are filled in.
	Propose(p sdk.Process, recent sdk.Span) (proposal sdk.Proposal, sensible bool)
}

// Chooser is a Problem that does not concern all processes.
type Chooser interface {
	// Concerns says whether a process is to be followed. It is asked again when more is known
	// of one that is not, e.g. that it has loaded another object.
	Concerns(p sdk.Process) bool
}

// defaultTries is what no Description.MaxTries means.
const defaultTries = 3

// New makes a tunlet against a problem, whose symptom has to last for a time; of 0, from one
// sample to the next. CPU times come in steps of 10 ms: 300 ms tell them to some per cent.
func New(problem Problem, lasting time.Duration) sdk.Tunlet {
	d := problem.Describe()
	d.MaxTries = cmp.Or(d.MaxTries, defaultTries)
	return &tunlet{problem: problem, description: d, lasting: max(lasting, time.Nanosecond)}
}

// tunlet follows every process of a session that concerns the problem.
type tunlet struct {
	problem     Problem
	description sdk.Description
	lasting     time.Duration
	watches     Watches[*watch]
}

// Framed tells the SDK's server which methods the problem may have: one of another signature is
// an error, and not just never called.
func (t *tunlet) Framed() (what any, optional []reflect.Type) {
	return t.problem, []reflect.Type{reflect.TypeFor[sdk.Configurer](), reflect.TypeFor[Chooser]()}
}

func (t *tunlet) Describe() sdk.Description { return t.problem.Describe() }

func (t *tunlet) Configure(options map[string]string) error {
	if c, ok := t.problem.(sdk.Configurer); ok {
		return c.Configure(options)
	}
	return nil
}

func (t *tunlet) ProcessStarted(h *sdk.Host, p sdk.Process) {
	if w := t.watches.Of(p.Handle); w != nil {
		w.process = p
		return
	}
	if c, chooses := t.problem.(Chooser); chooses && !c.Concerns(p) {
		h.Want(p.Handle, sdk.NoSamples())
		return
	}
	if w, begun := t.watches.Follow(h, p.Handle, func() *watch { return newWatch(t, p) }); begun {
		w.sleep(h)
	}
}

func (t *tunlet) ProcessEnded(_ *sdk.Host, end sdk.ProcessEnd) { t.watches.Forget(end.Handle) }

func (t *tunlet) HandleSamples(h *sdk.Host, s sdk.Samples) {
	for _, sample := range s.Items {
		if w := t.watches.Of(sample.Process); w != nil {
			w.take(h, sample)
		}
	}
}

// Evaluate leaves the verdict to the measurement.
func (t *tunlet) Evaluate(e sdk.Evaluation) (sdk.Verdict, string) {
	return e.ByObjective(t.description.Objective)
}

func (t *tunlet) ProposalChanged(h *sdk.Host, c sdk.ProposalChange) {
	for w := range t.watches.All() {
		w.heard(h, c)
	}
}
