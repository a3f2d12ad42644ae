// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"testing"

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
// the kernel knows, and nobody is watched after that.
func TestPricesAreMeasured(t *testing.T) {
	u := mustUprobes(t, Options{})
	u.attacher.mu.Lock()
	defer u.attacher.mu.Unlock()
	if err := u.load(); err != nil {
		t.Fatal(err)
	}
	u.price()
	if len(u.index) > 0 || len(u.points) > 0 {
		t.Error("this process is watched still")
	}
	if u.whyUnpriced != nil || len(u.prices) < 2 {
		t.Fatalf("prices %v: %v", u.prices, u.whyUnpriced)
	}
	for _, kind := range []struct {
		class InstructionClass
		place attunev1.Place
	}{{InstructionSingleStepped, atEntry}, {InstructionEmulated, atEntry}, {InstructionEmulated, atBoth}} {
		if price, measured := u.prices.of(kind.class, kind.place); !measured || price <= 0 {
			t.Errorf("%v at %v: %v, measured %v", kind.class, kind.place, price, measured)
		}
	}
	if _, measured := u.prices.of(InstructionRefused, attunev1.Place_PLACE_ENTRY); measured {
		t.Error("what is refused has a price")
	}
}
