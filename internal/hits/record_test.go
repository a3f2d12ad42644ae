// SPDX-License-Identifier: Apache-2.0

package hits

import (
	"encoding/binary"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// words packs a record or continuation: its four words.
func words(w ...uint64) (out []byte) {
	for _, one := range w {
		out = binary.LittleEndian.AppendUint64(out, one)
	}
	return out
}

// Whatever a session sends, nothing but text comes of it.
func FuzzHits(f *testing.F) {
	f.Add(append(words(0, 3|1<<24|9<<32, 0, 0), words(1<<40, 8<<16|0x5555<<32, 0, 0)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, h := range Decode(&attunev1.NamedRecords{Records: data}) {
			for _, c := range h.Captures {
				if len(c.Text) > len(data) || c.String() == "" {
					t.Errorf("%+v", c)
				}
			}
		}
	})
}
