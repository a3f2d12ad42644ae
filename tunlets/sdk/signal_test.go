// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"strings"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Every signal of the protocol has its name here, and back.
func TestSignalNames(t *testing.T) {
	for number, long := range attunev1.Signal_name {
		if number == 0 {
			continue
		}
		name := strings.ToLower(strings.TrimPrefix(long, "SIGNAL_"))
		if got := sdk.Signal(number).String(); got != name {
			t.Errorf("signal %d is %q, want %q", number, got, name)
		}
		if got, ok := sdk.SignalNamed(name); !ok || got != sdk.Signal(number) {
			t.Errorf("%q is signal %d, %v; want %d", name, got, ok, number)
		}
	}
	if n := len(attunev1.Signal_name) - 1; len(sdk.Signals()) != n {
		t.Errorf("%d signals, want %d", len(sdk.Signals()), n)
	}
	for _, none := range []string{"", "SIGNAL_CPU_USER", "nothing"} {
		if got, ok := sdk.SignalNamed(none); ok {
			t.Errorf("%q is signal %d", none, got)
		}
	}
	if none := sdk.Signal(200); none.String() != "" || none.Gauge() {
		t.Errorf("signal 200 is %q", none)
	}
}
