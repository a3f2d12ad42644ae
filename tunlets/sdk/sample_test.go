// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"testing"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Every signal has a name, and is found by it.
func TestSignalNames(t *testing.T) {
	for _, sig := range sdk.Signals() {
		if got, ok := sdk.SignalNamed(sig.String()); !ok || got != sig {
			t.Errorf("%q is signal %d, %v; want %d", sig, got, ok, sig)
		}
	}
	for _, none := range []string{"", "SIGNAL_CPU_USER", "nothing"} {
		if got, ok := sdk.SignalNamed(none); ok {
			t.Errorf("%q is signal %d", none, got)
		}
	}
	if none := sdk.Signal(1 << 20); none.String() != "" || none.Gauge() {
		t.Errorf("signal %d is %q", none, none)
	}
}

// A sample holds as many signals as the catalogue has.
func TestSampleHoldsAllSignals(t *testing.T) {
	var s sdk.Sample
	for _, sig := range sdk.Signals() {
		if _, ok := s.Value(sig); ok {
			t.Errorf("%v is there already", sig)
		}
		s = s.With(sig, float64(sig)+0.5)
	}
	for _, sig := range sdk.Signals() {
		if v, ok := s.Value(sig); !ok || v != float64(sig)+0.5 {
			t.Errorf("%v is %v, %v", sig, v, ok)
		}
	}
	s = s.With(1<<20, 1)
	if _, ok := s.Value(1 << 20); ok {
		t.Error("a sample has a signal that there is not")
	}
}
