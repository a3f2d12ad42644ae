// SPDX-License-Identifier: Apache-2.0

package workers

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
	most := strconv.Itoa(maxWorkers)
	if given["least"].Max != most || given["most"].Max != most || !slices.Equal(given["goal"].Choices, []string{GoalTime, GoalIndex}) {
		t.Errorf("%+v", given)
	}
}
