// SPDX-License-Identifier: Apache-2.0

package meter

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// counted is what was counted of a point: single hits, and records that stand for
// several each. Either may arrive when the point is delivered otherwise by now.
type counted struct{ hits, samples uint64 }

// total is how many hits that is, where a sample stands for so many.
func (c counted) total(every uint64) uint64 { return c.hits + c.samples*every }

// counts is what was counted of points of one process.
type counts map[uint16]counted

func (c *counts) add(point uint32, more counted) {
	if *c == nil {
		*c = make(counts)
	}
	before := (*c)[uint16(point)]
	(*c)[uint16(point)] = counted{before.hits + more.hits, before.samples + more.samples}
}

// addRecords adds packed records, and returns how many there are.
func (c *counts) addRecords(packed []byte) (n uint64) {
	for run := range attunev1.RecordRuns(packed) {
		c.add(run.Point, counted{hits: run.Records - run.Sampled, samples: run.Sampled})
		n += run.Records
	}
	return n
}
