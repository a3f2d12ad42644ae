// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package bpf

import (
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What has no price of this machine is reckoned with that of another one.
func TestPriceOfAnotherMachine(t *testing.T) {
	cost, measured := prices(nil).of(InstructionEmulated, attunev1.Place_PLACE_BOTH)
	if measured || cost != costEmulated+costBoth {
		t.Errorf("%v, measured %v", cost, measured)
	}
	if symbols, err := symbolsAt([]uintptr{0}); err == nil {
		t.Errorf("code at 0: %v", symbols)
	}
}

// Prices are measured with the first attachment, on functions of each class that
// the kernel knows, and stand in the order of the work that they take.
func TestPricesAreMeasured(t *testing.T) {
	u := mustUprobes(t, UprobesOptions{})
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.load(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	u.price()
	p := u.programs
	t.Log(p.prices, "took", time.Since(began))
	if len(u.watches.index) > 0 || len(u.watches.points) > 0 {
		t.Error("this process is watched still")
	}
	if p.whyUnpriced != nil || len(p.prices) < 2 {
		t.Fatalf("prices %v: %v", p.prices, p.whyUnpriced)
	}
	single, known := p.prices.of(InstructionSingleStepped, attunev1.Place_PLACE_ENTRY)
	emulated, knownToo := p.prices.of(InstructionEmulated, attunev1.Place_PLACE_ENTRY)
	if !known || !knownToo || single <= emulated {
		t.Errorf("single-stepped %v, emulated %v", single, emulated)
	}
	if both, _ := p.prices.of(InstructionEmulated, attunev1.Place_PLACE_BOTH); both <= emulated {
		t.Errorf("at both ends %v, at the entry %v", both, emulated)
	}
	if _, measured := p.prices.of(InstructionRefused, attunev1.Place_PLACE_ENTRY); measured {
		t.Error("what is refused has a price")
	}
}
