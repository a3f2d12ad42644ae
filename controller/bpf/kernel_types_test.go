// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// The quick reader must agree with the thorough one about every member that
// the programs use.
func TestKernelTypesAgreeWithLoader(t *testing.T) {
	if _, err := os.Stat(KernelTypesPath); errors.Is(err, fs.ErrNotExist) {
		t.Skip("this kernel has no type information")
	}
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		object string
		names  []string // that it is loaded with
	}{
		{"procevent/processevents_bpfel.o", slices.Concat(ExecStructs, TakenStructs)},
		{"taskaccount/taskaccount_bpfel.o", AccountStructs},
		{"taskaccount/taskfiles_x86_bpfel.o", FileStructs},
		{"trap/traps_x86_bpfel.o", KernelStructs},
		{"uprobe/captures_x86_bpfel.o", CallStructs},
		{"uprobe/uprobes_x86_bpfel.o", CallStructs},
	} {
		t.Run(tt.object, func(t *testing.T) {
			collection, err := ebpf.LoadCollectionSpec(tt.object)
			if err != nil {
				t.Fatal(err)
			}
			found := KernelTypes(collection.Types, tt.names)
			if found == nil {
				t.Fatal("nothing found")
			}
			for _, name := range tt.names {
				if !hasStruct(collection.Types, name) || !hasStruct(kernel, name) {
					continue
				}
				var quick *btf.Struct
				if err := found.TypeByName(name, &quick); err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				checkOffsets(t, quick, kernel)
			}
		})
	}
}

func hasStruct(in *btf.Spec, name string) bool {
	var found *btf.Struct
	return in.TypeByName(name, &found) == nil
}

func checkOffsets(t *testing.T, quick *btf.Struct, kernel *btf.Spec) {
	t.Helper()
	var thorough *btf.Struct
	if err := kernel.TypeByName(quick.Name, &thorough); err != nil {
		t.Fatal(err)
	}
	offsets := make(map[string]btf.Bits)
	for _, member := range thorough.Members {
		offsets[member.Name] = member.Offset
		for _, inner := range membersOf(member) {
			offsets[inner.Name] = member.Offset + inner.Offset
		}
	}
	for _, member := range quick.Members {
		if want, ok := offsets[member.Name]; !ok || member.Offset != want {
			t.Errorf("%s.%s at bit %d, want %d", quick.Name, member.Name, member.Offset, want)
		}
	}
}

// membersOf returns what an anonymous member consists of.
func membersOf(member btf.Member) []btf.Member {
	switch typ := member.Type.(type) {
	case *btf.Struct:
		if member.Name == "" {
			return typ.Members
		}
	case *btf.Union:
		if member.Name == "" {
			return typ.Members
		}
	}
	return nil
}

// tinyTypes is the type information of struct one { int a; int b; union { int c;
// }; }, b at bit 32 and c at 64, after an enum of one value.
func tinyTypes() []byte {
	words := func(values ...uint32) []byte {
		var raw []byte
		for _, value := range values {
			raw = binary.NativeEndian.AppendUint32(raw, value)
		}
		return raw
	}
	types := words(0, 6<<24|1, 4, 5, 0)                      // enum { a }
	types = append(types, words(0, 1<<24, 4, 32)...)         // int
	types = append(types, words(1, 4<<24|3, 12, 5, 2, 0)...) // struct one { a
	types = append(types, words(7, 2, 32, 0, 4, 64)...)      // b, union }
	types = append(types, words(0, 5<<24|1, 4, 9, 2, 0)...)  // union { c }
	names := []byte("\x00one\x00a\x00b\x00c\x00")
	raw := binary.NativeEndian.AppendUint16(nil, typesMagic)
	raw = append(raw, 1, 0)
	raw = append(raw, words(typesHeaderSize, 0, uint32(len(types)), uint32(len(types)), uint32(len(names)))...)
	return append(append(raw, types...), names...)
}

func TestFindOffsets(t *testing.T) {
	member := func(name string) btf.Member { return btf.Member{Name: name, Type: &btf.Int{Size: 4}} }
	tests := []struct {
		name     string
		local    btf.Struct
		optional []string
		raw      func([]byte) []byte
		want     []btf.Bits
		wantErr  bool
	}{
		{name: "both members", local: btf.Struct{Name: "one", Members: []btf.Member{member("b"), member("a")}}, want: []btf.Bits{32, 0}},
		{name: "member of an anonymous one", local: btf.Struct{Name: "one", Members: []btf.Member{member("c"), member("b")}}, want: []btf.Bits{64, 32}},
		{name: "unknown member", local: btf.Struct{Name: "one", Members: []btf.Member{member("d")}}, wantErr: true},
		{name: "optional members", local: btf.Struct{Name: "one", Members: []btf.Member{member("d"), member("c"), member("e"), member("b")}}, optional: []string{"c", "d", "e"}, want: []btf.Bits{64, 32}},
		{name: "unknown member beside an optional one", local: btf.Struct{Name: "one", Members: []btf.Member{member("d"), member("e")}}, optional: []string{"d"}, wantErr: true},
		{name: "unknown struct", local: btf.Struct{Name: "two", Members: []btf.Member{member("a")}}, want: []btf.Bits{0}},
		{name: "truncated", raw: func(raw []byte) []byte { return raw[:len(raw)-1] }, wantErr: true},
		{name: "other format", raw: func(raw []byte) []byte { raw[0]++; return raw }, wantErr: true},
		{name: "unknown kind", raw: func(raw []byte) []byte { raw[typesHeaderSize+7] = 31; return raw }, wantErr: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			raw := tinyTypes()
			if test.raw != nil {
				raw = test.raw(raw)
			}
			err := findOffsets(raw, map[string]*wantedStruct{test.local.Name: {local: &test.local, optional: test.optional}})
			if (err != nil) != test.wantErr {
				t.Fatalf("error %v, want one: %t", err, test.wantErr)
			}
			if !test.wantErr && test.raw == nil && len(test.local.Members) != len(test.want) {
				t.Fatalf("members %v, want %d", test.local.Members, len(test.want))
			}
			for i, want := range test.want {
				if got := test.local.Members[i].Offset; got != want {
					t.Errorf("%s at bit %d, want %d", test.local.Members[i].Name, got, want)
				}
			}
		})
	}
}

// TestOptionalMembers: what the programs have in another form of a struct is looked for in the kernel's one.
func TestOptionalMembers(t *testing.T) {
	collection, err := ebpf.LoadCollectionSpec("taskaccount/taskaccount_bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := wantedStructs(collection.Types, TakenStructs)
	if err != nil {
		t.Fatal(err)
	}
	task := wanted["task_struct"]
	if task == nil {
		t.Fatal("the programs read no task_struct")
	}
	var names []string
	for _, m := range task.local.Members {
		names = append(names, m.Name)
	}
	for _, name := range []string{"worker_private", "pf_io_worker"} {
		if !slices.Contains(task.optional, name) || !slices.Contains(names, name) {
			t.Errorf("%s is not among the optional ones, %q, or not among all, %q", name, task.optional, names)
		}
	}
	if slices.Contains(task.optional, "flags") || wanted["task_struct___worker"] != nil {
		t.Errorf("optional %q, structs %v", task.optional, wanted)
	}
}

func TestFindTypes(t *testing.T) {
	tests := []struct {
		name  string
		kind  uint32
		query string
		want  uint32
	}{
		{"the struct", kindStruct, "one", 3},
		{"of another kind", kindFunction, "one", 0},
		{"the name of a member", kindStruct, "a", 0},
		{"no such name", kindStruct, "two", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := findTypes(tinyTypes(), test.kind, test.query); got[test.query] != test.want || err != nil {
				t.Errorf("numbers %v, %v, want %d", got, err, test.want)
			}
		})
	}
	if _, err := findTypes(tinyTypes()[:30], kindStruct, "one"); err == nil {
		t.Error("no error of truncated types")
	}
}

func FuzzFindOffsets(f *testing.F) {
	f.Add(tinyTypes())
	f.Fuzz(func(_ *testing.T, raw []byte) {
		local := &btf.Struct{Name: "one", Members: []btf.Member{{Name: "b", Type: &btf.Int{Size: 4}}}}
		_ = findOffsets(raw, map[string]*wantedStruct{"one": {local: local}}) // must not panic
	})
}
