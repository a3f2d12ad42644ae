// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/perprocess"
)

// Tunlet does what a definition says, in every process of a session. Made by
// Definition.New.
type Tunlet struct {
	*Definition

	options map[string]any // values by name, as expressions see them
	watches perprocess.Watches[*watch]
	others  others
}

// New makes a tunlet of the definition; any number may share it.
func (d *Definition) New() sdk.Tunlet {
	return &Tunlet{Definition: d}
}

// Describe says what the file says.
func (t *Tunlet) Describe() sdk.Description { return t.description }

// Configure takes the options of the file, which have defaults.
func (t *Tunlet) Configure(options map[string]string) error {
	t.options = map[string]any{}
	for _, o := range t.description.Options {
		v, err := optionValue(o.Type, options[o.Name])
		if err != nil {
			return err
		}
		t.options[o.Name] = v
	}
	return nil
}

// optionValue is an option's value as expressions see it: times in seconds, and
// all that is a number as floating point number.
func optionValue(t sdk.OptionType, text string) (any, error) {
	switch t {
	case sdk.BooleanOption:
		return text == "true", nil
	case sdk.TextOption:
		return text, nil
	case sdk.DurationOption:
		d, err := time.ParseDuration(text)
		return d.Seconds(), err
	case sdk.BytesOption:
		n, err := sdk.ParseBytes(text)
		return float64(n), err
	}
	return strconv.ParseFloat(text, 64)
}

// ProcessStarted begins to follow a process, or looks again at one of which more
// is known.
func (t *Tunlet) ProcessStarted(h *sdk.Host, p sdk.Process) {
	w, begun := t.watches.Follow(h, p.Handle, func() *watch { return newWatch(t, p) })
	if !begun {
		if w = t.watches.Of(p.Handle); w == nil {
			return
		}
		same := len(w.process.Objects) == len(p.Objects)
		if w.process = p; same {
			return
		}
	}
	if w.state == quiet {
		w.sleep(h)
	}
}

// ProcessEnded forgets it.
func (t *Tunlet) ProcessEnded(h *sdk.Host, end sdk.ProcessEnd) {
	if w := t.watches.Of(end.Handle); w != nil {
		w.release(h)
	}
	t.watches.Forget(end.Handle)
}

// HandleSamples looks for the symptom, when all processes of the round are known.
func (t *Tunlet) HandleSamples(h *sdk.Host, s sdk.Samples) {
	t.others.forget()
	var sampled []*watch
	for _, sample := range s.Items {
		if w := t.watches.Of(sample.Process); w != nil && w.take(sample) {
			sampled = append(sampled, w)
		}
	}
	for _, w := range sampled {
		w.look(h)
	}
	for _, w := range sampled { // now that nobody asks any more what others do
		if w.idle(h.Now()) {
			w.sleep(h)
		}
	}
}

// HandleAggregates takes what measure points counted.
func (t *Tunlet) HandleAggregates(h *sdk.Host, a sdk.Aggregates) {
	if a.Seconds() == 0 || len(t.points) == 0 {
		return
	}
	counted := map[sdk.Handle]counts{}
	for _, item := range a.Items {
		w := t.watches.Of(item.Process)
		if w == nil || !a.Known(item.Process) {
			continue
		}
		if counted[item.Process] == nil {
			counted[item.Process] = counts{}
		}
		counted[item.Process].add(w.pointOf(item.Point), item, a.Seconds())
	}
	for _, p := range a.Unknown {
		if w := t.watches.Of(p); w != nil {
			w.pairs.drain(a.Seconds()) // they are of no interval that is known
		}
	}
	for _, p := range slices.Sorted(maps.Keys(counted)) {
		w := t.watches.Of(p)
		counted[p].join(w.pairs.drain(a.Seconds()))
		w.count(h, a.From, counted[p])
	}
}

// HandleRecords takes the hits of points whose time to another one is counted.
func (t *Tunlet) HandleRecords(_ *sdk.Host, r sdk.Records) {
	w := t.watches.Of(r.Process)
	if w == nil {
		return
	}
	if r.Lost > 0 {
		w.pairs.lose()
	}
	for record := range r.All() {
		begin, end := strings.CutSuffix(w.pointOf(record.Point), endSuffix)
		if p := w.pairs[begin]; p != nil {
			p.hit(end, record)
		}
	}
}

// PointChanged hears whether points could be placed.
func (t *Tunlet) PointChanged(h *sdk.Host, c sdk.PointChange) {
	if w := t.watches.Of(c.Process); w != nil {
		w.placed(h, c)
	}
}

// Evaluate waits while the program does something else; otherwise the measured
// objective decides.
func (t *Tunlet) Evaluate(e sdk.Evaluation) (sdk.Verdict, string) {
	return e.ByObjective(t.description.Objective)
}

// ProposalChanged follows the tunlet's proposals.
func (t *Tunlet) ProposalChanged(h *sdk.Host, c sdk.ProposalChange) {
	for w := range t.watches.All() {
		if w.proposal == c.Proposal && w.state == proposed && c.State.Final() {
			w.settled(h, c.State)
		} else {
			w.hear(h, c)
		}
	}
}
