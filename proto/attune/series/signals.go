// SPDX-License-Identifier: Apache-2.0

package series

import (
	"iter"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Reading is the value of one signal.
type Reading struct {
	ID    ID
	Value uint64
}

// SignalTable makes the table of the signals of a process.
func SignalTable(readings ...Reading) *attunev1.Table {
	numbers, values := make([]uint32, len(readings)), make([]uint64, len(readings))
	for i, r := range readings {
		numbers[i], values[i] = uint32(r.ID), r.Value
	}
	return &attunev1.Table{
		Table: uint32(signals.ID), Of: signals.Of, Total: 1, Numbers: numbers, Rows: []*attunev1.Row{{Numbers: values}},
	}
}

// SignalsOf yields the signals that a sample has.
func SignalsOf(s *attunev1.Sample) iter.Seq2[ID, uint64] {
	return func(yield func(ID, uint64) bool) {
		for _, t := range s.GetTables() {
			if TableID(t.GetTable()) != signals.ID {
				continue
			}
			for _, row := range t.GetRows() {
				values := row.GetNumbers()
				for i, id := range t.GetNumbers()[:min(len(t.GetNumbers()), len(values))] {
					if !yield(ID(id), values[i]) {
						return
					}
				}
			}
		}
	}
}

// Signal returns the value of a signal in a sample, and whether it was read. A nil
// sample has none.
func Signal(s *attunev1.Sample, id ID) (float64, bool) {
	for known, value := range SignalsOf(s) {
		if known == id {
			return float64(value), true
		}
	}
	return 0, false
}
