// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/attune-hpc/attune/internal/bounded"
)

// Functions returns the functions that a name or pattern stands for (see
// [File.Lookup]), in ascending order of addresses, each once and under its best
// name, and none without error if there are none. The answer is remembered as
// long as the file is open; the caller must not modify it.
//
// Of a pattern, indirect functions (IFUNC) are left out; where a name stands
// for one, the error wraps [ErrIndirect] and names implementations to ask for.
func (f *File) Functions(query string) ([]Symbol, error) {
	f.answers.mu.Lock()
	known, ok := f.answers.known[query]
	f.answers.mu.Unlock()
	if ok {
		return known.symbols, known.err
	}
	fresh := f.functions(query)
	f.answers.mu.Lock()
	defer f.answers.mu.Unlock()
	f.answers.keep(query, fresh)
	return fresh.symbols, fresh.err
}

func (f *File) functions(query string) answer {
	found, err := f.Lookup(query, LookupOptions{Kind: Function})
	if errors.Is(err, ErrNoSymbol) {
		return answer{}
	}
	if err != nil {
		return answer{err: err}
	}
	var symbols []Symbol
	for _, one := range found {
		if one.InFile && !one.IFunc() {
			symbols = append(symbols, one)
		}
	}
	if len(symbols) == 0 && len(found) > 0 && found[0].IFunc() {
		err = f.indirect(found[0])
	}
	return answer{symbols, err}
}

// indirect says how the functions are called that a resolver chooses from: by
// custom, its name is part of theirs.
func (f *File) indirect(resolver Symbol) error {
	err := fmt.Errorf("%w: %s in %s is chosen at load time", ErrIndirect, resolver.Display(), f.name)
	likely, _ := f.Lookup("*"+resolver.Name+"_*", LookupOptions{Kind: Function, Limit: maxListed})
	var names []string
	for _, one := range likely {
		if !one.IFunc() && one.Value != resolver.Value {
			names = append(names, one.Display())
		}
	}
	if len(names) == 0 {
		return err
	}
	return fmt.Errorf("%w from such as %s; watch these", err, strings.Join(names, ", "))
}

// Outline reads where functions begin.
func (f *File) Outline() (*Outline, error) {
	return f.outline.get(f.readOutline)
}

// maxColdNames bounds what is kept of names, bytes: a hundred thousand of usual length.
const maxColdNames = 64 << 20

func (f *File) readOutline() (*Outline, error) {
	o := &Outline{cold: make(map[string][]Symbol)}
	names := bounded.NewWork("keeping the names of seldom executed parts of "+f.name, maxColdNames)
	if err := f.EachFunction(func(s Symbol) error { return o.add(s, names) }); err != nil {
		return nil, err
	}
	o.settle()
	for _, name := range []string{".plt", ".plt.sec", ".plt.got"} {
		if address, size, ok := f.SectionAddress(name); ok {
			o.stubs = append(o.stubs, table{address, size})
		}
	}
	return o, nil
}

// maxAddressNames bounds what is kept of names, bytes.
const maxAddressNames = 256 << 20

// Addresses reads the functions of the file and, if it is stripped, those that its debug
// file, MiniDebugInfo or Go's own table tells.
func (f *File) Addresses() (*Addresses, error) { return f.addresses.get(f.readAddresses) }

func (f *File) readAddresses() (*Addresses, error) {
	const entry = 40 // what one takes beside its name
	all := new(Addresses)
	names := bounded.NewWork("keeping the names of functions of "+f.name, maxAddressNames)
	err := f.EachFunction(func(s Symbol) error {
		all.add(s)
		return names.Spend(entry + len(s.Name))
	})
	all.settle()
	return all, err
}

// EachFunction visits the functions of the file's own tables or, if it is stripped, of
// what others know of it too, until visit fails: [ErrUnsupported]. One that several symbols
// or tables name is visited for each.
func (f *File) EachFunction(visit func(Symbol) error) error {
	tables, err := f.ownTables()
	if err != nil {
		return err
	}
	if tables[len(tables)-1].dynamic {
		tables = append(tables, f.debugSymbols()...)
	}
	for _, t := range tables {
		t.each(&f.layout, filter{wants: func([]byte) bool { return true }}, func(s Symbol) bool {
			if err == nil && s.Is(Function) && s.Executable {
				err = visit(s)
			}
			return err == nil
		})
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return nil
}
