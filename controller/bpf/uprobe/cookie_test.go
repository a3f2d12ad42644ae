// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// The quick reader finds the numbers that the thorough one finds.
func TestFindTypeAgreesWithLoader(t *testing.T) {
	kernel, err := btf.LoadKernelSpec()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, btf.ErrNotFound) || errors.Is(err, ebpf.ErrNotSupported) {
		t.Skip("this kernel has no type information")
	}
	if err != nil {
		t.Fatal(err)
	}
	var function *btf.Func
	var context *btf.Struct
	want := castTypes{}
	if kernel.TypeByName("bpf_rdonly_cast", &function) == nil && kernel.TypeByName("bpf_uprobe_multi_run_ctx", &context) == nil {
		want = castTypes{function: mustID(t, kernel, function), context: mustID(t, kernel, context)}
	}
	if got := findCastTypes(); got != want {
		t.Errorf("found %+v, want %+v", got, want)
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
