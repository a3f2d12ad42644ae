// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"
	"testing"
)

// TestTroubleThatIsOver: what is no more is no trouble, and the others stay.
func TestTroubleThatIsOver(t *testing.T) {
	n := &notes{changed: func() {}}
	n.trouble("the clock was set")
	n.trouble(switchedOff + "a new kernel is on trial")
	n.over(switchedOff)
	if _, troubles := n.current(); len(troubles) != 1 || !strings.HasSuffix(troubles[0], " the clock was set") {
		t.Errorf("troubles %q", troubles)
	}
}
