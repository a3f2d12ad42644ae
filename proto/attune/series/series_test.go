// SPDX-License-Identifier: Apache-2.0

package series_test

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/testing/golden"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// The catalogue names each series once, in one form, with a number of its own.
func TestCatalogue(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	ids, tables := map[series.ID]string{}, map[series.TableID]string{}
	for _, table := range append(series.Tables(), *series.Signals()) {
		if before, twice := tables[table.ID]; twice || table.ID == 0 || !name.MatchString(table.Name) || table.Of == 0 {
			t.Errorf("table %d %q, before it %q", table.ID, table.Name, before)
		}
		tables[table.ID] = table.Name
		names := map[string]bool{}
		for _, s := range table.Series {
			if names[s.Label()] || !name.MatchString(s.Name) || s.Help == "" || s.Kind == 0 {
				t.Errorf("%s: %+v is there twice, or something of it is missing", table.Name, s)
			}
			names[s.Label()] = true
			ofSubject := s.Kind == series.KindNumber || s.Kind == series.KindLife
			if before, twice := ids[s.ID]; twice && !ofSubject || ofSubject != (s.ID == 0) {
				t.Errorf("%s: %s has the number %d of %q", table.Name, s.Name, s.ID, before)
			}
			ids[s.ID] = s.Name
		}
	}
}

// What has a number keeps it for good: recordings and messages have nothing else.
func TestNumbers(t *testing.T) {
	var lines []string
	for _, table := range append(series.Tables(), *series.Signals()) {
		lines = append(lines, fmt.Sprintf("table %d %s", table.ID, table.Name))
		for _, s := range table.Series {
			if s.ID != 0 {
				lines = append(lines, fmt.Sprintf("%d %s %s", s.ID, table.Name, s.Label()))
			}
		}
	}
	golden.File(t, "testdata/numbers", []byte(strings.Join(lines, "\n")+"\n"))
}

// What travels is what comes, a part of some rows only included, and what a newer
// version adds is left out.
func TestDetails(t *testing.T) {
	want := series.Details{
		Threads: &series.Rows[series.Thread]{Total: 2, Items: []series.Thread{{TID: 8, StartTicks: 5, Name: "a", Run: time.Second}, {TID: 9}}},
		Sockets: &series.Rows[series.Socket]{Error: "one is not permitted", Total: 3, Items: []series.Socket{
			{FD: 4, Inode: 9, Kind: "tcp", TCP: &series.TCP{State: "listen", MinRTT: 3 * time.Microsecond, LastSent: time.Millisecond}},
			{FD: 6, Kind: "tcp", SendBufferSet: true, TCP: &series.TCP{}},
			{FD: 5, Kind: "unix"},
		}},
		Pipes:  &series.Rows[series.Pipe]{Items: []series.Pipe{}},
		Memory: &series.Memory{ResidentBytes: 1 << 40},
	}
	tables := want.Tables()
	if n := len(tables); n != 5 { // sockets of TCP and others apart
		t.Errorf("%d tables, want 5: %v", n, tables)
	}
	for _, table := range tables {
		table.Numbers = append(table.Numbers, 1<<20)
		for _, row := range table.Rows {
			row.Numbers = append(row.Numbers, 7)
		}
	}
	got := series.DetailsFrom(tables)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(series.Details{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	rows := got.Rows(series.TableSockets)
	if rows.Total != 3 || len(rows.Items) != 3 || rows.Items[2].Number != 5 || rows.Items[0].Text(1101) != "tcp" {
		t.Errorf("rows %+v", rows)
	}
	if v, ok := rows.Items[0].Value(1114); !ok || v != 3 {
		t.Errorf("least round-trip time %d, %v", v, ok)
	}
	if v, ok := rows.Items[2].Value(1114); ok {
		t.Errorf("a Unix socket has a round-trip time of %d", v)
	}
	if d := series.DetailsFrom((&series.Details{Memory: &series.Memory{Error: "no"}}).Tables()); d.Memory == nil || d.Memory.Error != "no" || d.Threads != nil {
		t.Errorf("memory that cannot be read: %+v", d)
	}
}

// FuzzDetails: no message, however malformed, does harm.
func FuzzDetails(f *testing.F) {
	whole := &attunev1.Sample{Tables: (&series.Details{Threads: &series.Rows[series.Thread]{Items: []series.Thread{{TID: 1}}}}).Tables()}
	data, err := proto.Marshal(whole)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(_ *testing.T, data []byte) {
		s := &attunev1.Sample{}
		if proto.Unmarshal(data, s) != nil {
			return
		}
		d := series.DetailsFrom(s.GetTables())
		d.Tables()
		for i := range series.Tables() {
			if rows := d.Rows(series.Tables()[i].ID); rows != nil {
				for _, row := range rows.Items {
					row.Value(1003)
					row.Text(1001)
				}
			}
		}
		series.Signal(s, series.RunTime)
	})
}

func TestSignals(t *testing.T) {
	table := series.SignalTable(series.Reading{ID: series.RunTime, Value: 7}, series.Reading{ID: 1 << 20, Value: 8})
	sample := &attunev1.Sample{Tables: []*attunev1.Table{{Table: 1, Numbers: []uint32{3}, Rows: []*attunev1.Row{{Numbers: []uint64{1}}}}, table}}
	got := maps.Collect(series.SignalsOf(sample))
	if diff := cmp.Diff(map[series.ID]uint64{series.RunTime: 7, 1 << 20: 8}, got); diff != "" {
		t.Errorf("signals (-want +got)\n%s", diff)
	}
	if v, ok := series.Signal(sample, series.RunTime); !ok || v != 7 {
		t.Errorf("run time %v, %v", v, ok)
	}
	table.Rows[0].Numbers = nil // less than the table says
	if v, ok := series.Signal(sample, series.RunTime); ok {
		t.Errorf("run time %v of an empty row", v)
	}
	if v, ok := series.Signal(nil, series.RunTime); ok {
		t.Errorf("run time %v of no sample", v)
	}
}
