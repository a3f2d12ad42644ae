// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// answers remembers what Functions found. All ranks of a node ask the same of
// the same libraries.
type answers struct {
	mu    sync.Mutex // guards known; never held while a file is read
	known map[string]answer
	names int // bytes of them
}

type answer struct {
	symbols []Symbol
	err     error
}

// Bounds of what one file remembers; most answers are empty.
const (
	maxAnswers     = 256
	maxAnswerNames = 1 << 20 // bytes
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

// keep remembers an answer. The caller holds mu.
func (a *answers) keep(query string, fresh answer) {
	size := len(query)
	for _, s := range fresh.symbols {
		size += len(s.Name)
	}
	if a.known == nil || len(a.known) >= maxAnswers || a.names+size > maxAnswerNames {
		a.known, a.names = make(map[string]answer), 0
	}
	a.known[query] = fresh
	a.names += size
}

func (f *File) functions(query string) answer {
	found, err := f.Lookup(query, LookupOptions{Kind: Function, DebugDirs: f.debugDirs})
	if errors.Is(err, ErrNoSymbol) {
		return answer{}
	}
	if err != nil {
		return answer{err: err}
	}
	var symbols []Symbol
	for _, one := range found {
		if one.InFile && !one.IFunc() {
			symbols = append(symbols, one.Symbol)
		}
	}
	if len(symbols) == 0 && len(found) > 0 && found[0].IFunc() {
		err = f.indirect(found[0])
	}
	return answer{symbols, err}
}

// indirect says how the functions are called that a resolver chooses from: by
// custom, its name is part of theirs.
func (f *File) indirect(resolver Found) error {
	err := fmt.Errorf("%w: %s in %s is chosen at load time", ErrIndirect, resolver.Display(), f.name)
	likely, _ := f.Lookup("*"+resolver.Name+"_*", LookupOptions{Kind: Function, DebugDirs: f.debugDirs, Limit: maxListed})
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
