// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"errors"
	"testing"
)

func TestParseUserID(t *testing.T) {
	tests := []struct {
		name, data string
		want       uint32
		err        error
	}{
		{"plain", "Name:\tUid: 5\nUid:\t1000\t0\t0\t0\n", 1000, nil},
		{"greatest", "Name:\tx\nUid:\t4294967295\t0\n", 4294967295, nil},
		{"none", "Name:\tx\n", 0, ErrMalformed},
		{"cut off", "Name:\tx\nUid:", 0, ErrMalformed},
		{"no number", "Name:\tx\nUid:\troot\n", 0, ErrMalformed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := parseUserID([]byte(test.data)); got != test.want || !errors.Is(err, test.err) {
				t.Errorf("user %d, %v, want %d, %v", got, err, test.want, test.err)
			}
		})
	}
}
