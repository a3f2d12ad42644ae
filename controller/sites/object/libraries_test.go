// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/patch/flow"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// share counts in what way places of an object can be patched.
type share struct {
	all, narrow, wide int
	reasons           map[string]int
}

var figures = regexp.MustCompile(`\+?0x[0-9a-f]+|[0-9]+`)

func (s *share) refused(err error) {
	if s.reasons == nil {
		s.reasons = make(map[string]int)
	}
	s.reasons[figures.ReplaceAllString(err.Error(), "N")]++
}

func (s *share) percent(n int) float64 { return 100 * float64(n) / float64(max(s.all, 1)) }

func (s *share) log(t *testing.T, what string) {
	t.Helper()
	t.Logf("%s: %d, by one byte %.1f %%, by a whole jump %.1f %% more, together %.1f %%",
		what, s.all, s.percent(s.narrow), s.percent(s.wide), s.percent(s.narrow+s.wide))
	for reason, count := range s.reasons {
		t.Logf("  %d: %s", count, reason)
	}
}

// bias is where the libraries are taken to lie.
const bias = 0x7f1234567000

// surveyed is an object of which is found out how the functions can be patched, where nothing
// else is mapped near it.
type surveyed struct {
	*Object
	used                    []patch.Region
	seen                    map[uint64]bool
	entries, found, patched share
}

func mustOpen(t *testing.T, path string) *surveyed {
	t.Helper()
	file, err := objfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	o := &Object{File: file}
	s := &surveyed{Object: o, seen: make(map[uint64]bool)}
	if err := o.load(); err != nil {
		t.Fatal(err)
	}
	last := o.loaded[len(o.loaded)-1]
	s.used = []patch.Region{{Start: bias, End: bias + last.Address + uint64(len(last.Code))}}
	return s
}

// functions are those of the object, each address once.
func (s *surveyed) functions(t *testing.T) (all []objfile.Symbol) {
	t.Helper()
	err := s.EachFunction(func(f objfile.Symbol) error {
		if f.Size > 0 && f.InFile && !f.IFunc() && !s.seen[f.Value] {
			s.seen[f.Value] = true
			all = append(all, f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// usable says whether one byte does.
func (s *surveyed) usable(site patch.Site) error {
	_, err := site.Land(func(landing uint64) error {
		start, end := patch.Stretch(landing)
		return patch.Placeable(start, end, s.used)
	})
	return err
}

func (s *surveyed) entryOf(t *testing.T, f objfile.Symbol) {
	t.Helper()
	s.entries.all++
	code, err := s.Code(f, patch.SiteBytes)
	if err != nil {
		t.Fatal(err)
	}
	site, err := patch.Examine(f.Value+bias, code)
	if err == nil {
		err = s.usable(site)
	}
	if err == nil {
		s.entries.narrow++
		return
	}
	around, err := s.Around(f, f.Value)
	if err == nil {
		_, err = patch.Wide(f.Value, code[:min(uint64(len(code)), f.Size)], around, bias)
	}
	if err != nil {
		s.entries.refused(err)
		return
	}
	s.entries.wide++
}

// exitsOf counts the functions whose exits are all found, and those that can
// all be patched.
func (s *surveyed) exitsOf(t *testing.T, f objfile.Symbol, next map[uint64]uint64) {
	t.Helper()
	s.found.all++
	s.patched.all++
	exits, _, err := s.Exits(f)
	if err != nil {
		s.found.refused(err)
		return
	}
	s.found.narrow++
	ways := map[bool]int{}
	var done []patch.Site
	for i, exit := range exits {
		if next != nil && next[exit.Address] == 0 {
			t.Errorf("%s: its exit at %#x is no instruction", f.Name, exit.Address)
		}
		site, err := s.exitAt(f, exits[i:])
		if err == nil && slices.ContainsFunc(done, site.Overlaps) {
			err = errors.New("it is too near to another one")
		}
		if err != nil {
			s.patched.refused(err)
			return
		}
		done = append(done, site)
		ways[site.Wide()]++
	}
	if ways[true] == 0 {
		s.patched.narrow++
	} else {
		s.patched.wide++
	}
}

func (s *surveyed) exitAt(f objfile.Symbol, left []flow.Exit) (patch.Site, error) {
	code, err := s.CodeAt(left[0].Address, patch.SiteBytes)
	if err != nil {
		return patch.Site{}, err
	}
	site, err := patch.ExamineExit(left[0].Address+bias, code, left[0])
	if err == nil && s.usable(site) == nil && (len(left) == 1 || left[1].Address >= left[0].Address+patch.JumpBytes) {
		return site, nil
	}
	around, err := s.Around(f, left[0].Address)
	if err != nil {
		return patch.Site{}, err
	}
	return patch.WideExit(left[0], around, bias)
}

// mustDisassemble tells where instructions begin; nil where nobody can.
func mustDisassemble(t *testing.T, path string) map[uint64]uint64 {
	t.Helper()
	if _, err := exec.LookPath("objdump"); err != nil {
		return nil
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 3<<20 {
		return nil // takes half a minute
	}
	return targets.Boundaries(t, path)
}

// TestShare prints how many functions of real libraries can be patched at their
// entry and at their exits, and by which of the ways; all of them in the full suite, else a
// sample.
func TestShare(t *testing.T) {
	every := 16
	if targets.AllRounds() {
		every = 1
	}
	for _, path := range targets.Libraries(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := mustOpen(t, path)
			next := mustDisassemble(t, path)
			for i, f := range s.functions(t) {
				if i%every != 0 {
					continue
				}
				s.entryOf(t, f)
				s.exitsOf(t, f, next)
			}
			s.entries.log(t, "entries")
			s.found.log(t, "exits found")
			s.patched.log(t, "all exits patched")
			if n := s.entries.narrow + s.entries.wide; n*100 < s.entries.all*90 {
				t.Errorf("only %d of %d entries can be patched", n, s.entries.all)
			}
			if s.found.narrow*100 < s.found.all*60 {
				t.Errorf("the exits of only %d of %d functions are found", s.found.narrow, s.found.all)
			}
		})
	}
}
