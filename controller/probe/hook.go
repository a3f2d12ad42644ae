// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"

	"github.com/attune-hpc/attune/controller/shm"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// placeHook turns one of DMLib's hooks on.
func (h *host) placeHook(index uint16, spec *attunev1.MeasurePoint, name string) (*placement, error) {
	hook, ok := shm.HookByName(name)
	if !ok {
		return nil, fmt.Errorf("DMLib has no hook %q", name)
	}
	memory := h.process.Memory()
	if memory == nil {
		if p, ok := h.process.(latecomer); ok && p.Expected() {
			return nil, errExpected
		}
		return nil, errNoDMLib
	}
	delivery, captures, err := h.control(index, spec, MechanismHook)
	if err != nil {
		return nil, err
	}
	p := &placement{mechanism: MechanismHook, symbols: []string{name}, captured: captures}
	local := hook.Index
	if owner := h.owner[local]; owner != 0 && owner != index {
		p.reason, p.extra = whyShared, costShared
		local, err = memory.Share(hook.Index, delivery)
	} else {
		err = memory.SetPoint(local, delivery)
	}
	if err != nil {
		return nil, fmt.Errorf("hook %s: %w", name, err)
	}
	p.reckon(spec)
	h.owner[local] = index
	p.locals = []int{local}
	return p, nil
}

// whyShared is the reason of points that share a hook.
const whyShared = "another measure point with other settings has the hook as well"
