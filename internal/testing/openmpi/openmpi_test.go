// SPDX-License-Identifier: Apache-2.0

package openmpi

import (
	"errors"
	"testing"
)

const (
	signal  = "[node2:00048] Signal: Segmentation fault (11)\n"
	address = "[node2:00048] Failing at address: (nil)\n"
	frame   = "[node2:00048] [ 0] /lib/x86_64-linux-gnu/libc.so.6(+0x3c050)[0x7fe39a5a2050]\n"
	end     = "[node2:00048] *** End of error message ***\n"
	death   = signal + address + frame + end
)

func TestDiedInInit(t *testing.T) {
	for _, tt := range []struct {
		name, output string
		want         bool
	}{
		{"no rank has left", death, true},
		{"rank 0 has left", "start\n" + death, true},
		{"rank 0 waits for long", death + "start\nprogress 0.100 1\n", true},
		{"all have left", "start\nprogress 0.100 2\n" + death, false},
		{"all have left long ago", "start\nprogress 0.100 120\n" + death, false},
		{"the end is reached", "start\ntotal 0.050000 7\n" + death, false},
		{"a caller", signal + address + frame +
			"[node2:00048] [ 1] /usr/lib/libmpi.so.40(ompi_mpi_init+0x2)[0x7fe39a5a2050]\n" + end, false},
		{"another address", signal + "[node2:00048] Failing at address: 0x8\n" + frame + end, false},
		{"another signal", "[node2:00048] Signal: Bus error (7)\n" + address + frame + end, false},
		{"no signal", "srun: error: node2: task 4: Exited with exit code 1\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := DiedInInit(tt.output); got != tt.want {
				t.Errorf("excused: %t, want %t", got, tt.want)
			}
		})
	}
}

// One death in MPI_Init is excused, and no other failure.
func TestRun(t *testing.T) {
	inInit, later := errors.New("exit status 139\n"+death), errors.New("exit status 1")
	for _, tt := range []struct {
		name   string
		starts []error
		want   error
	}{
		{"good", []error{nil}, nil},
		{"good the second time", []error{inInit, nil}, nil},
		{"dies twice", []error{inInit, inInit}, inInit},
		{"another failure", []error{later}, later},
	} {
		t.Run(tt.name, func(t *testing.T) {
			started := 0
			_, err := Run(t, func() (string, error) {
				started++
				return "start\n", tt.starts[started-1]
			})
			if !errors.Is(err, tt.want) || started != len(tt.starts) {
				t.Errorf("%v after %d starts, want %v after %d", err, started, tt.want, len(tt.starts))
			}
		})
	}
}
