// SPDX-License-Identifier: Apache-2.0

package procevent

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/bpf"
)

func TestNameKeys(t *testing.T) {
	tests := []struct {
		name  string
		names []Name
		want  map[string]uint32 // text and bits to user
	}{
		{"whole", []Name{{Text: "solve", UID: AnyUser}}, map[string]uint32{"solve/48": AnyUser}},
		{"beginning", []Name{{Text: "solve", Beginning: true, UID: 7}}, map[string]uint32{"solve/40": 7}},
		{"everything", []Name{{Beginning: true, UID: 7}}, map[string]uint32{"/0": 7}},
		{"the kernel keeps 15 bytes", []Name{{Text: "a-very-long-name-indeed", UID: 7}}, map[string]uint32{"a-very-long-nam/128": 7}},
		{"two users of one name", []Name{{Text: "s", UID: 7}, {Text: "s", UID: 8}}, map[string]uint32{"s/16": AnyUser}},
		{"the longest match must know the shorter one's user", []Name{{Text: "sol", Beginning: true, UID: 7}, {Text: "solve", UID: 8}, {Text: "x", UID: 9}}, map[string]uint32{"sol/24": 7, "solve/48": AnyUser, "x/16": 9}},
		{"the same user", []Name{{Text: "sol", Beginning: true, UID: 7}, {Text: "solve", UID: 7}}, map[string]uint32{"sol/24": 7, "solve/48": 7}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := make(map[string]uint32)
			for key, uid := range nameKeys(test.names) {
				got[bpf.Text(key.Name[:])+"/"+strconv.Itoa(int(key.Bits))] = uid
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}
