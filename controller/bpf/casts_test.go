// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"io/fs"
	"maps"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// TestFindCastsAgreesWithLoader: the quick reader finds the numbers that the thorough one finds.
func TestFindCastsAgreesWithLoader(t *testing.T) {
	kernel, err := btf.LoadKernelSpec()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, btf.ErrNotFound) || errors.Is(err, ebpf.ErrNotSupported) {
		t.Skip("this kernel has no type information")
	}
	if err != nil {
		t.Fatal(err)
	}
	want := Casts{types: make(map[string]uint32)}
	var function *btf.Func
	structs := []string{"file", "hlist_head", "pt_regs"}
	if kernel.TypeByName(castFunction, &function) != nil {
		structs, want = nil, Casts{}
	} else {
		want.function = mustID(t, kernel, function)
	}
	for _, name := range structs {
		var s *btf.Struct
		if err := kernel.TypeByName(name, &s); err != nil {
			t.Fatal(err)
		}
		want.types[name] = mustID(t, kernel, s)
	}
	if got := FindCasts("file", "hlist_head", "pt_regs"); got.function != want.function || !maps.Equal(got.types, want.types) {
		t.Errorf("found %+v, want %+v", got, want)
	}
	if got := FindCasts("file", "no_such_struct_anywhere"); got.function != 0 {
		t.Errorf("without one of the structs found %+v", got)
	}
}

func mustID(t *testing.T, spec *btf.Spec, typ btf.Type) uint32 {
	t.Helper()
	id, err := spec.TypeID(typ)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(id)
}
