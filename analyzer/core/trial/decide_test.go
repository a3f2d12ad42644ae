// SPDX-License-Identifier: Apache-2.0

package trial

import "testing"

// At the end of the time, a change that had been kept goes for what its pairs show
// together, not for their median alone.
func TestDecideAgainAtTheEnd(t *testing.T) {
	tests := []struct {
		name  string
		gains []float64
		want  Action
	}{
		{"less in all of them", []float64{0.9, 0.88, 0.91, 0.9, 0.89, 0.9, 0.92, 0.9}, UndoIt},
		{"less in most", []float64{0.9, 0.8, 0.91, 1.02, 0.85, 0.9, 0.92, 0.9}, UndoIt},
		{"less and more", []float64{0.9, 1.3, 0.9, 1.2, 0.8, 0.92, 1.1, 0.9}, KeepIt},
		{"few", []float64{0.9, 0.88, 0.91, 0.9}, KeepIt},
		{"a little less", []float64{0.97, 0.98, 0.97, 0.98, 0.97, 0.98, 0.97, 0.98}, KeepIt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turns := &turns{within: []float64{1.5}}
			for _, gain := range tt.gains {
				turns.compared = append(turns.compared, pair{gain: gain})
			}
			if got := turns.findings(0.05, false).decideAgain(0.05, true, ""); got.Do != tt.want {
				t.Errorf("%+v, want %v", got, tt.want)
			}
		})
	}
}

// Few pairs prove something if they are clear, and the latest; the first may be of
// an application that was still starting.
func TestClearPairs(t *testing.T) {
	clear := func(gains ...float64) (out []pair) {
		for _, gain := range gains {
			out = append(out, pair{gain: gain, clear: true})
		}
		return out
	}
	unclear := pair{gain: 2.5}
	tests := []struct {
		name       string
		pairs      []pair
		within     float64
		gain, loss bool
	}{
		{"two of a large gain", clear(2.5, 2.6), 1.05, true, false},
		{"an unclear one before", append([]pair{unclear}, clear(2.5, 2.6, 2.5)...), 1.05, true, false},
		{"a loss before", clear(0.9, 2.6, 2.5, 2.6), 1.05, true, false},
		{"two of four are unclear, though of a large gain", append(clear(2.5, 2.6), unclear, unclear), 1.05, true, false},
		{"two of four are unclear, and of less", append(clear(1.6, 1.5), pair{gain: 1.5}, pair{gain: 1.6}), 1.05, false, false},
		{"four that scatter", []pair{{gain: 9}, {gain: 1.2}, {gain: 4}, {gain: 0.9}}, 1.05, false, false},
		{"an odd one", append([]pair{unclear}, clear(2.5)...), 1.05, false, false},
		{"the application varies as much by itself", clear(2.5, 2.6), 1.6, false, false},
		{"four of less", clear(1.6, 1.5, 1.6, 1.6), 1.05, true, false},
		{"two of less", clear(1.6, 1.5), 1.05, false, false},
		{"eight of still less", clear(1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2), 1.05, true, false},
		{"eight of too little", clear(1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1), 1.02, false, false},
		{"two of a large loss", clear(1.3, 0.8, 0.6, 0.5), 1.05, false, true},
		{"in both directions", clear(2.5, 0.4), 1.05, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turns := &turns{compared: tt.pairs, within: []float64{tt.within}}
			f := turns.findings(0.05, false)
			if gain, loss := f.proveGain(0.005, false), f.proveLoss(0.005); gain != tt.gain || loss != tt.loss {
				t.Errorf("gain %v, loss %v; want %v, %v: %+v", gain, loss, tt.gain, tt.loss, f)
			}
		})
	}
}
