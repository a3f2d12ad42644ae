// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestIsController(t *testing.T) {
	tests := []struct {
		name                    string
		percent, limit, minimum uint64
		want                    bool
	}{
		{"as it starts", 100, math.MaxInt64, 4 << 20, true},
		{"a memory limit", 100, 1 << 30, 4 << 20, true},
		{"another percentage", 33, math.MaxInt64, 4 << 20 * 33 / 100, true},
		{"off", math.MaxUint32, math.MaxInt64, math.MaxUint64 / 100, false},
		{"nothing yet", 0, 0, 0, false},
		{"another least heap", 100, math.MaxInt64, 512 << 10, false},
		{"a count beside it", 100 | 7<<32, math.MaxInt64, 4 << 20, false},
		{"no limit", 100, 0, 4 << 20, false},
	}
	for _, tt := range tests {
		data := binary.LittleEndian.AppendUint64(nil, tt.percent)
		data = binary.LittleEndian.AppendUint64(data, tt.limit)
		data = binary.LittleEndian.AppendUint64(data, tt.minimum)
		if got := isController(data); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
