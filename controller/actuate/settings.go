// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"fmt"
	"strings"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Setting is a setting that the controller knows by name.
type Setting struct {
	// Name, e.g. "glibc.malloc.top_pad".
	Name string
	// Description in a sentence, with the unit of the value.
	Description string
	// Min and Max of the value.
	Min, Max int64
	// Default that the library documents.
	Default int64
	// WayIn says how it is changed.
	WayIn string

	option int // mallopt(3) parameter
	field  func(MallocLayout) uint64
}

// Settings returns every named setting; docs/reference/settings.md is made
// from it.
func Settings() []Setting {
	const way = "mallopt(3), called by DMLib at an allocation hook; without DMLib the parameter is written in place"
	return []Setting{
		{
			Name: "glibc.malloc.mmap_threshold", Min: 0, Max: 32 << 20, Default: 128 << 10,
			Description: "Bytes from which malloc maps a block of its own, and unmaps it at free. " +
				"Setting it turns glibc's dynamic threshold off. 32 MiB is the most that glibc takes.",
			WayIn: way, option: -3, field: func(l MallocLayout) uint64 { return l.MmapThreshold },
		},
		{
			Name: "glibc.malloc.trim_threshold", Min: 0, Max: 1<<31 - 1, Default: 128 << 10,
			Description: "Bytes free at the top of the heap from which free gives memory back to the kernel.",
			WayIn:       way, option: -1, field: func(l MallocLayout) uint64 { return l.TrimThreshold },
		},
		{
			Name: "glibc.malloc.top_pad", Min: 0, Max: 1<<31 - 1, Default: 0,
			Description: "Bytes that malloc asks the kernel for beyond what it needs.",
			WayIn:       way, option: -2, field: func(l MallocLayout) uint64 { return l.TopPad },
		},
	}
}

func (a *Actuator) planSetting(ctx context.Context, process Process, at *attunev1.SafePoint, request *attunev1.NamedSetting) (*plan, error) {
	names := make([]string, 0, 3)
	for _, s := range Settings() {
		if s.Name == request.GetName() {
			return a.planMalloc(ctx, process, at, s, request.GetValue())
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("%w: unknown setting %q; known are %s",
		ErrRefused, request.GetName(), strings.Join(names, ", "))
}
