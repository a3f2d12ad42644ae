// SPDX-License-Identifier: Apache-2.0

package passing

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestError(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{fmt.Errorf("accept: %w", os.NewSyscallError("accept4", unix.EMFILE)), true},
		{&os.PathError{Op: "fork/exec", Err: unix.EAGAIN}, true},
		{os.ErrDeadlineExceeded, false},
		{unix.EACCES, false},
		{errors.New("too many open files"), false},
	} {
		if got := Error(tt.err); got != tt.want {
			t.Errorf("%v passes: %v", tt.err, got)
		}
	}
}
