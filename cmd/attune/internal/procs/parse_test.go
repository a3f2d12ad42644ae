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
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := Parse(row.args)
			if diff := cmp.Diff(row.want, got); diff != "" || exitcode.Of(err) != row.code {
				t.Errorf("error %v, pids (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestShown(t *testing.T) {
	if got, want := Shown("no object \x1b[2J\a\nof é"), "no object ?[2J?\nof é"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
