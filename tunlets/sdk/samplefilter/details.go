// SPDX-License-Identifier: Apache-2.0

package samplefilter

import (
	"slices"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// kinds are kinds of details, in the order of their numbers.
type kinds []uint32

// kindsOf are those of a list that the catalogue has.
func kindsOf(list []uint32) (out kinds) {
	for i := range series.Tables() {
		if id := uint32(series.Tables()[i].ID); slices.Contains(list, id) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// SetDetails takes over which details are wanted of a process, with all of its
// samples, and says whether that is new. Whoever does so calls Forget at the end
// of the process.
func (f *Filter) SetDetails(w *attunev1.TableWant) (changed bool) {
	wanted := kindsOf(w.GetTables())
	if slices.Equal(f.details[w.GetProcess()], wanted) {
		return false
	}
	if len(wanted) == 0 {
		delete(f.details, w.GetProcess())
		return true
	}
	if f.details == nil {
		f.details = make(map[uint64]kinds)
	}
	f.details[w.GetProcess()] = wanted
	return true
}

// Details returns the kinds of details that are wanted of a process. The caller does
// not change them.
func (f *Filter) Details(process uint64) []uint32 { return f.details[process] }

// isDetail says whether a table holds details, and no signals.
func isDetail(t *attunev1.Table) bool { return series.TableID(t.GetTable()) != series.Signals().ID }

// detailed says whether a sample has details.
func detailed(s *attunev1.Sample) bool { return slices.ContainsFunc(s.GetTables(), isDetail) }

// of returns a sample with no other details than those of the kinds; the sample
// itself where it has no others.
func (k kinds) of(s *attunev1.Sample) *attunev1.Sample {
	unwanted := func(t *attunev1.Table) bool { return isDetail(t) && !slices.Contains(k, t.GetTable()) }
	if !slices.ContainsFunc(s.GetTables(), unwanted) {
		return s
	}
	return &attunev1.Sample{Process: s.GetProcess(), Tables: slices.DeleteFunc(slices.Clone(s.GetTables()), unwanted)}
}

// hasOne says whether a kind of details was read, and whether there is any.
func hasOne(kind uint32, s *attunev1.Sample) (has, read bool) {
	for _, t := range s.GetTables() {
		if t.GetTable() == kind {
			has, read = has || t.GetTotal() > 0, true
		}
	}
	return has, read
}
