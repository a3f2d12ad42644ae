// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// unit is a record of a point, or with point 0 a continuation, that holds n.
func unit(point, n uint16) []byte {
	data := make([]byte, recordSize)
	data[0] = byte(n)
	binary.LittleEndian.PutUint16(data[recordPoint:], point)
	if point == 0 {
		data[recordFlags] = recordContinuation
	}
	return data
}

func TestSplitKeepsContinuations(t *testing.T) {
	first, second := &tunlet{name: "first"}, &tunlet{name: "second"}
	ps := &points{byIndex: map[uint32]*point{
		1: {subscribers: []subscriber{{first, "a"}, {second, "a"}}},
		2: {subscribers: []subscriber{{second, "b"}}},
	}}
	stray := unit(0, 9) // belongs to no record
	data := bytes.Join([][]byte{stray, unit(1, 1), unit(0, 2), unit(0, 3), unit(2, 4), unit(0, 5), unit(3, 6), unit(0, 7), unit(1, 8)}, nil)
	parts := ps.split(1, data)
	for _, tt := range []struct {
		tunlet *tunlet
		want   [][]byte
	}{
		{first, [][]byte{unit(1, 1), unit(0, 2), unit(0, 3), unit(1, 8)}},
		{second, [][]byte{unit(1, 1), unit(0, 2), unit(0, 3), unit(2, 4), unit(0, 5), unit(1, 8)}},
	} {
		if want := bytes.Join(tt.want, nil); !bytes.Equal(parts[tt.tunlet], want) {
			t.Errorf("%s got\n%v, want\n%v", tt.tunlet.name, parts[tt.tunlet], want)
		}
	}
	if ps.byIndex[1].hits != 2 || ps.byIndex[2].hits != 1 || recordsIn(data) != 4 {
		t.Errorf("hits %d and %d, %d records", ps.byIndex[1].hits, ps.byIndex[2].hits, recordsIn(data))
	}
}
