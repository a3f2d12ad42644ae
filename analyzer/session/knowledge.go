// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync"

	"github.com/attune-hpc/attune/analyzer/core"
)

// knowledge is what earlier runs have learnt. It belongs to the loop, but for what
// waits for it.
type knowledge struct {
	inbox    *inbox
	workers  *sync.WaitGroup
	decider  *decider
	sleepers *sleepers
	known    func(application string) []core.Known // may wait; nil: nothing is known
	recalled map[string]bool                       // executables that it was asked for
}

// recall asks, once for each executable, what earlier runs have learnt about it.
func (k *knowledge) recall(p *process) {
	sum := p.info.GetExecutableSha256()
	if k.known == nil || sum == "" || k.recalled[sum] {
		return
	}
	k.recalled[sum] = true
	k.workers.Go(func() {
		if known := k.known(sum); len(known) > 0 {
			k.inbox.post(func() { k.remember(known) })
		}
	})
}

// remember tells the core, and starts the tunlets that helped before.
func (k *knowledge) remember(known []core.Known) {
	k.decider.step(core.Knowledge{Known: known})
	for _, one := range known {
		if one.Helped() {
			k.sleepers.need(one.Tunlet, "woken: it helped this program before")
		}
	}
}
