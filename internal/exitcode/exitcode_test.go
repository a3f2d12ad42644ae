// SPDX-License-Identifier: Apache-2.0

package exitcode

import (
	"errors"
	"fmt"
	"testing"
)

func TestOf(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"nil", nil, OK},
		{"plain", errors.New("x"), Failure},
		{"wrapped", fmt.Errorf("a: %w", UsageError(errors.New("x"), "do y")), Usage},
		{"not found", &Error{Code: NotFound, Err: errors.New("x")}, NotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Of(tt.err); got != tt.want {
				t.Errorf("Of(%v) = %d, want %d", tt.err, got, tt.want)
			}
		})
	}
}

func TestErrorNamesTheRemedy(t *testing.T) {
	cause := errors.New("no such thing")
	err := UsageError(cause, "make one")
	if got, want := err.Error(), "no such thing; make one"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is not wrapped")
	}
}
