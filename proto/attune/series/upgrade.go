// SPDX-License-Identifier: Apache-2.0

package series

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// Upgrade turns what earlier versions wrote into a frame of a recording into what
// is written there now. It does nothing to a frame of this version.
func Upgrade(f *attunev1.RecordingFrame) {
	for _, s := range f.GetSamples().GetSamples() {
		upgradeSample(s)
	}
	for _, w := range f.GetTunlet().GetInfo().GetWake() {
		upgradeLevels(w.GetLevels())
	}
	for _, i := range f.GetReaction().GetReaction().GetInterests() {
		upgradeLevels(i.GetLevels())
	}
}

// upgradeSample makes tables of readings. The numbers of signals are those of
// their series.
func upgradeSample(s *attunev1.Sample) {
	if len(s.GetReadings()) == 0 {
		return
	}
	readings := make([]Reading, 0, len(s.GetReadings()))
	for _, r := range s.GetReadings() {
		readings = append(readings, Reading{ID(r.GetSignal()), uint64(r.GetValue())})
	}
	s.Tables, s.Readings = append(s.Tables, SignalTable(readings...)), nil
}

func upgradeLevels(levels []*attunev1.Level) {
	for _, l := range levels {
		if l.GetSeries() == 0 {
			l.Series, l.Signal = uint32(l.GetSignal()), attunev1.Signal_SIGNAL_UNSPECIFIED
		}
	}
}
