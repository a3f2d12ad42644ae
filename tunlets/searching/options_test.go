// SPDX-License-Identifier: Apache-2.0

package searching

import (
	"slices"
	"strconv"
	"testing"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// What the tags of the options say is what the code goes by.
func TestOptionsAreThoseOfTheCode(t *testing.T) {
	given := map[string]sdk.Option{}
	for _, o := range sdk.OptionsOf[options]() {
		given[o.Name] = o
	}
	if !slices.Contains(given["kind"].Choices, kindReal) || !slices.Contains(given["method"].Choices, methodNelderMead) ||
		given["tries"].Max != strconv.Itoa(mostTries) {
		t.Errorf("%+v", given)
	}
}
