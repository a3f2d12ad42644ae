// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/exitcode"
)

func TestParsePIDs(t *testing.T) {
	for _, row := range []struct {
		name string
		args []string
		want []int
		code int
	}{
		{"one", []string{"12"}, []int{12}, exitcode.OK},
		{"each once", []string{"12", "13", "12"}, []int{12, 13}, exitcode.OK},
		{"none", nil, nil, exitcode.Usage},
		{"a name", []string{"solver"}, nil, exitcode.Usage},
		{"a group", []string{"-12"}, nil, exitcode.Usage},
		{"attune itself", []string{strconv.Itoa(os.Getpid())}, nil, exitcode.Usage},
		{"the greatest", []string{"2147483647"}, []int{1<<31 - 1}, exitcode.OK},
		{"none's", []string{"2147483648"}, nil, exitcode.Usage},
		{"no number at all", []string{"18446744073709551617"}, nil, exitcode.Usage},
		{"nobody's", []string{"0"}, nil, exitcode.Usage},
		{"a name behind", []string{"12", "solver"}, nil, exitcode.Usage},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := Parse(row.args)
			if diff := cmp.Diff(row.want, got); diff != "" || exitcode.Of(err) != row.code {
				t.Errorf("error %v, pids (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestLeadingPIDs(t *testing.T) {
	for _, row := range []struct {
		name string
		args []string
		want []int
		rest []string
	}{
		{"what follows may be a number", []string{"12", "13", "12", "libc.so.6:malloc_trim", "0"}, []int{12, 13}, []string{"libc.so.6:malloc_trim", "0"}},
		{"nothing follows", []string{"12"}, []int{12}, nil},
		{"none leads", []string{"%3"}, nil, []string{"%3"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, rest, err := Leading(row.args)
			if diff := cmp.Diff([]any{row.want, row.rest, nil}, []any{got, rest, err}); diff != "" {
				t.Errorf("pids, rest and error (-want +got):\n%s", diff)
			}
		})
	}
}
