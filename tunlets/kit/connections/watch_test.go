// SPDX-License-Identifier: Apache-2.0

package connections

import (
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// TestRenewed: there is a value of the objective when all connections have been read since the one
// before. Each round is 50 ms after the one before; a connection is told of for the first time in the
// first rounds.
func TestRenewed(t *testing.T) {
	tests := []struct {
		name   string
		rounds [][]uint64 // the connections that are read in one, over and over
		total  int
		closed uint64 // this one is, after 12 rounds
		want   []int  // rounds with a value, from the 12th
	}{
		{"all in each round", [][]uint64{{1, 2}}, 2, 0, []int{12, 13, 14, 15, 16, 17, 18, 19}},
		{"in turn", [][]uint64{{1, 2}, {3, 4}, {5}}, 5, 0, []int{12, 15, 18}},
		{"seldom", [][]uint64{{1, 2}, {}, {}, {}}, 2, 0, []int{12, 16}},
		{"one is closed", [][]uint64{{1, 2}}, 2, 2, []int{12, 13, 14, 15, 16, 17, 18, 19}},
		{"one is closed in turn", [][]uint64{{1}, {2}, {3}}, 3, 3, []int{12, 15, 18}},
		{"none", [][]uint64{{}}, 0, 0, []int{12, 13, 14, 15, 16, 17, 18, 19}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWatch(&Problem{}, sdk.Process{}, taken{})
			var got []int
			for n := range 20 {
				now := time.Unix(1000, 0).Add(time.Duration(n) * 50 * time.Millisecond)
				read := &sdk.SocketDetails{Total: tt.total}
				for _, inode := range tt.rounds[n%len(tt.rounds)] {
					if n < 12 || inode != tt.closed {
						read.Items = append(read.Items, sdk.SocketDetail{Inode: inode, TCP: &sdk.TCPDetail{State: established}})
					}
				}
				w.read(now, read)
				if w.renewed() {
					w.reported = now
					if n >= 12 {
						got = append(got, n)
					}
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("values in rounds %v, want %v", got, tt.want)
			}
		})
	}
}
