// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"testing"
	"time"
)

// Batches of one interval are known by its beginning, to the nanosecond: the two clocks are not
// read at the same time.
func TestBatchesOfAnInterval(t *testing.T) {
	k := &aggregates{began: time.Now()}
	for range 1000 {
		if from := k.batchUntil(time.Now(), nil).GetFromUnixNano(); from != k.began.UnixNano() {
			t.Fatalf("from %d, want %d", from, k.began.UnixNano())
		}
	}
}
