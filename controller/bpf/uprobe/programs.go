// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"

	"github.com/attune-hpc/attune/controller/aggregate"
	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/cpulist"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// uprobePrograms is what is loaded: the maps at the first Attach, and each program when
// a point needs it, since the kernel takes 15 ms to verify one, and 40 ms where it
// captures.
type uprobePrograms struct {
	maps   uprobeMaps
	loaded map[programKey]*ebpf.Program
	types  map[bool]*btf.Spec // of the kernel, for those that capture and the others
	multi  bool
	whyNot string // multi, if it is not
	casts  bpf.Casts
	kernel uint32 // its LINUX_VERSION_CODE

	options   Options
	ringBytes uint32
	calls     uint32 // places of their table, the same for all programs whatever CPU comes
}

// runContext has the attach cookie of a uprobe, from Linux 6.6 on.
const runContext = "bpf_uprobe_multi_run_ctx"

// uprobeMaps are the maps that bpf2go knows, that of the C's variables, which all
// programs must share, and the variables that are used from here.
type uprobeMaps struct {
	uprobesMaps
	Zeroed   *ebpf.Map      `ebpf:".bss"`
	Expected *ebpf.Variable `ebpf:"expected"`
	Interval *ebpf.Variable `ebpf:"interval"`
}

// leg is one of the probes that a place needs.
type leg struct {
	program string
	atExit  bool // by a return probe
}

// programKey names a program, in the form that captures or the other.
type programKey struct {
	name      string
	capturing bool
}

// loadPrograms makes the maps.
func loadPrograms(options Options) (*uprobePrograms, error) {
	whyNot, err := options.whyNotMulti()
	if err != nil {
		return nil, err
	}
	p := &uprobePrograms{
		multi: whyNot == "", whyNot: whyNot, options: options,
		loaded: make(map[programKey]*ebpf.Program), types: make(map[bool]*btf.Spec),
	}
	if p.kernel, err = features.LinuxVersionCode(); err != nil {
		return nil, fmt.Errorf("%s: %w", uprobes, err)
	}
	online, err := cpulist.Online()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", uprobes, err)
	}
	p.calls = callPlaces(options.MaxCalls, len(online))
	if p.multi {
		p.casts = bpf.FindCasts(runContext)
	}
	spec, err := loadUprobes()
	if err == nil {
		err = p.configure(spec)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", uprobes, err)
	}
	if err := spec.LoadAndAssign(&p.maps, nil); err != nil {
		return nil, bpf.Explain(uprobes, err)
	}
	p.ringBytes = spec.Maps[uprobesMapRingMemory].ValueSize - ringGuard
	return p, nil
}

// configure gives what is to be loaded the options' sizes.
func (p *uprobePrograms) configure(spec *ebpf.CollectionSpec) error {
	for _, program := range spec.Programs {
		if !p.multi {
			program.AttachType = ebpf.AttachNone
		}
	}
	size := func(name string, entries uint32) {
		if entries != 0 {
			spec.Maps[name].MaxEntries = entries
		}
	}
	size(uprobesMapWatched, p.options.MaxWatches)
	size(uprobesMapWatches, p.options.MaxWatches)
	size(uprobesMapCalls, p.calls)
	bpf.Preallocate(spec, p.kernel)
	// The kernel wants some inner map as a pattern.
	spec.Maps[uprobesMapKeyTables].InnerMap = innerTableSpec[aggregate.Memory](2)
	spec.Maps[uprobesMapTextTables].InnerMap = innerTableSpec[uprobesKeyText](2)
	spec.Maps[uprobesMapRowTables].InnerMap = innerTableSpec[Row](2)
	spec.Maps[uprobesMapObjectTables].InnerMap = innerTableSpec[uprobesUnwindObject](2)
	ring := spec.Maps[uprobesMapRingMemory]
	if p.options.RingBytes != 0 {
		ring.ValueSize = p.options.RingBytes + ringGuard
	}
	return errors.Join(
		bpf.SetPIDNamespace(spec),
		p.casts.Apply(spec, map[string]string{uprobesVarRunCtxType: runContext}),
		spec.Variables[uprobesVarRingSize].Set(ring.ValueSize-ringGuard),
	)
}

const (
	defaultMaxCalls = 8192
	// callsOfCPU is how many free places of an LRU table a CPU takes for itself at a time
	// (LOCAL_FREE_TARGET of the kernel). Others cannot have them.
	callsOfCPU = 128
	// maxCallsOfCPUs bounds what is added for them, since the kernel allocates the whole table,
	// 144 bytes a place, for each controller. Of more CPUs that time calls the last find fewer
	// places than defaultMaxCalls.
	maxCallsOfCPUs = 256 * callsOfCPU
)

// callPlaces is how many places the table of calls has on a machine with so many CPUs.
func callPlaces(asked uint32, cpus int) uint32 {
	return cmp.Or(asked, defaultMaxCalls+min(callsOfCPU*uint32(cpus), maxCallsOfCPUs))
}

// legs lists the probes in the order of attaching. Of a pair the exit comes
// first: a call that begins in between then has an exit too many, which is
// lost, at most, and not an entry that is remembered for ever.
func (p *uprobePrograms) legs(spec Spec) ([]bpf.Probe, error) {
	var needed []leg
	switch {
	case spec.pairs():
		needed = []leg{{uprobesProgPairExit, true}, {uprobesProgPairEntry, false}}
	case spec.Place == attunev1.Place_PLACE_EXIT:
		needed = []leg{{uprobesProgAtExit, !spec.returns()}}
	default:
		needed = []leg{{uprobesProgAtEntry, false}}
	}
	probes := make([]bpf.Probe, len(needed))
	for i, leg := range needed {
		program, err := p.program(leg.program, !spec.Program.Empty())
		if err != nil {
			return nil, err
		}
		probes[i] = bpf.Probe{Program: program, AtExit: leg.atExit}
	}
	return probes, nil
}

// program returns a program by name, in the form that captures or the other.
func (p *uprobePrograms) program(name string, capturing bool) (*ebpf.Program, error) {
	key := programKey{name, capturing}
	if loaded := p.loaded[key]; loaded != nil {
		return loaded, nil
	}
	read, what := loadUprobes, uprobes
	if capturing {
		read, what = loadCaptures, uprobes+" that capture"
	}
	spec, err := read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	types, known := p.types[capturing]
	if !known {
		types = bpf.KernelTypes(spec.Types, bpf.CallStructs)
		p.types[capturing] = types
	}
	loaded, err := p.loadProgram(spec, name, types)
	if err != nil {
		return nil, bpf.Explain(what, err)
	}
	p.loaded[key] = loaded
	return loaded, nil
}

// capturesObject has the programs in the form that captures. Its maps and variables
// are those of the others, so that it needs no bindings.
//
//go:embed captures_x86_bpfel.o
var capturesObject []byte

func loadCaptures() (*ebpf.CollectionSpec, error) {
	return ebpf.LoadCollectionSpecFromReader(bytes.NewReader(capturesObject))
}

// loadProgram puts a program into the kernel. All of them share the maps.
func (p *uprobePrograms) loadProgram(spec *ebpf.CollectionSpec, name string, types *btf.Spec) (*ebpf.Program, error) {
	if err := p.configure(spec); err != nil {
		return nil, err
	}
	maps.DeleteFunc(spec.Programs, func(other string, _ *ebpf.ProgramSpec) bool { return other != name })
	m := &p.maps
	collection, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{KernelTypes: types}, MapReplacements: map[string]*ebpf.Map{
		".bss": m.Zeroed, uprobesMapBuckets: m.Buckets, uprobesMapCalls: m.Calls, uprobesMapKeyTables: m.KeyTables,
		uprobesMapPlans: m.Plans, uprobesMapPrograms: m.Programs, uprobesMapRecordRing: m.RecordRing,
		uprobesMapRingMemory: m.RingMemory, uprobesMapWatched: m.Watched,
		uprobesMapWatches: m.Watches, uprobesMapExpectations: m.Expectations,
		uprobesMapTextTables: m.TextTables, uprobesMapRowTables: m.RowTables, uprobesMapObjectTables: m.ObjectTables,
	}})
	if err != nil {
		return nil, err
	}
	defer collection.Close()
	return collection.DetachProgram(name), nil
}

func (p *uprobePrograms) close() error {
	errs := []error{p.maps.Close(), p.maps.Zeroed.Close()}
	for _, program := range p.loaded {
		errs = append(errs, program.Close())
	}
	return errors.Join(errs...)
}
