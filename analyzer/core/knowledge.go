// SPDX-License-Identifier: Apache-2.0

package core

// maxKnown bounds the advice of earlier runs that is kept in mind.
const maxKnown = 10000

// Known is what earlier runs of an application say about an advice.
type Known struct {
	// Advice is its id.
	Advice string
	// Tunlet is who gave it.
	Tunlet string
	// Gain is the latest that was measured, as a ratio; 0: none.
	Gain float64
	// Kept and Undone count the runs that tried it, by what became of it.
	Kept, Undone int
}

// Helped reports whether it is to be expected to help again: more runs kept it than
// took it back, and what was measured last is a gain, or no figure: one from no
// progress to some is no ratio.
func (k Known) Helped() bool { return k.Kept > k.Undone && (k.Gain > 1 || k.Gain == 0) }

// Knowledge hands over what earlier runs have learnt. It is a hint: what helped
// is tried before anything else that waits, and judged like everything.
type Knowledge struct {
	// Known is what they have learnt.
	Known []Known
}

func (Knowledge) event() {}

// knowledge is what earlier runs have learnt, by advice.
type knowledge map[string]Known

// learn takes knowledge in.
func (all knowledge) learn(known []Known) {
	for _, k := range known {
		if _, there := all[k.Advice]; there || len(all) < maxKnown {
			all[k.Advice] = k
		}
	}
}

// helped reports whether p is known to help.
func (all knowledge) helped(p *proposal) bool { return all[p.advice].Helped() }

// promised returns the gain that is to be expected of p: what an earlier run
// measured, or else what its model predicts; 0: nobody knows.
func (all knowledge) promised(p *proposal) float64 {
	if k := all[p.advice]; k.Helped() && k.Gain > 0 {
		return k.Gain
	}
	return p.spec.GetPredictedGain()
}
