// SPDX-License-Identifier: Apache-2.0

package controller

import "testing"

func TestOnlyUser(t *testing.T) {
	tests := []struct {
		name   string
		status string
		want   bool
	}{
		{"own", "Name:\tsolver\nUid:\t1001\t1001\t1001\t1001\nGid:\t0\t0\t0\t0\n", true},
		{"another's", "Uid:\t1002\t1002\t1002\t1002\n", false},
		{"set-user-id", "Uid:\t1001\t0\t0\t0\n", false},
		{"may become root again", "Uid:\t1001\t1001\t0\t1001\n", false},
		{"spoilt", "Uid:\t1001\tx\t1001\t1001\n", false},
		{"no ids", "Uid:\n", false},
		{"no line", "Name:\tUid:\n", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := onlyUser([]byte(test.status), 1001); got != test.want {
				t.Errorf("only user 1001: %v, want %v", got, test.want)
			}
		})
	}
}
