// SPDX-License-Identifier: Apache-2.0

package series_test

import (
	"maps"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

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
		series.Upgrade(samples(s))
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

// What earlier versions recorded is what is recorded now.
func TestUpgrade(t *testing.T) {
	reading := func(of attunev1.Signal, v float64) *attunev1.Reading { return &attunev1.Reading{Signal: of, Value: v} }
	for _, tt := range []struct {
		name      string
		old, want *attunev1.RecordingFrame
	}{
		{
			"signals",
			samples(&attunev1.Sample{Process: 3, Readings: []*attunev1.Reading{reading(3, 5e9), reading(5, 2)}}),
			samples(&attunev1.Sample{Process: 3, Tables: []*attunev1.Table{
				series.SignalTable(series.Reading{ID: series.RunTime, Value: 5e9}, series.Reading{ID: series.MinorFaults, Value: 2}),
			}}),
		},
		{
			"details",
			samples(&attunev1.Sample{Details: &attunev1.Details{
				Threads: &attunev1.ThreadDetails{Total: 3, Items: []*attunev1.ThreadDetail{
					{Tid: 8, StartTicks: 5, Name: "worker", State: "R", RunNanos: 1e9, LastCpu: 1, CpusAllowed: "0-1"},
				}},
				Sockets: &attunev1.SocketDetails{Total: 2, Items: []*attunev1.SocketDetail{
					{Fd: 4, Inode: 9, Kind: attunev1.SocketKind_SOCKET_KIND_TCP, SendBufferSet: true, Tcp: &attunev1.TcpDetail{NoDelay: true, RttMicros: 40}},
					{Fd: 5, Kind: attunev1.SocketKind_SOCKET_KIND_UNIX},
				}},
				Pipes:  &attunev1.PipeDetails{Error: "not permitted"},
				Memory: &attunev1.MemoryDetails{ResidentBytes: 4096},
			}}),
			samples(&attunev1.Sample{Tables: (&series.Details{
				Threads: &series.Rows[series.Thread]{Total: 3, Items: []series.Thread{
					{TID: 8, StartTicks: 5, Name: "worker", State: "R", Run: time.Second, LastCPU: 1, CPUsAllowed: "0-1"},
				}},
				Sockets: &series.Rows[series.Socket]{Total: 2, Items: []series.Socket{
					{FD: 4, Inode: 9, Kind: "tcp", SendBufferSet: true, TCP: &series.TCP{NoDelay: true, RTT: 40 * time.Microsecond}},
					{FD: 5, Kind: "unix"},
				}},
				Pipes:  &series.Rows[series.Pipe]{Error: "not permitted"},
				Memory: &series.Memory{ResidentBytes: 4096},
			}).Tables()}),
		},
		{
			"details that are wanted",
			reaction(&attunev1.Reaction{Details: []*attunev1.DetailInterest{{Process: 7, Kinds: []attunev1.DetailKind{1, 4}}}}),
			reaction(&attunev1.Reaction{Wants: []*attunev1.TableWant{{Process: 7, Tables: []uint32{1, 4}}}}),
		},
		{
			"levels of an interest",
			reaction(&attunev1.Reaction{Interests: []*attunev1.SampleInterest{{Levels: []*attunev1.Level{{Signal: 5, AtLeast: 3}}}}}),
			reaction(&attunev1.Reaction{Interests: []*attunev1.SampleInterest{{Levels: []*attunev1.Level{{Series: 5, AtLeast: 3}}}}}),
		},
		{
			"levels of a condition of waking",
			waking(&attunev1.Wake{Detail: 2, Levels: []*attunev1.Level{{Signal: 5, AtLeast: 3}}}),
			waking(&attunev1.Wake{Table: 2, Levels: []*attunev1.Level{{Series: 5, AtLeast: 3}}}),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, f := range []*attunev1.RecordingFrame{tt.old, proto.CloneOf(tt.want)} {
				series.Upgrade(f)
				if diff := cmp.Diff(tt.want, f, protocmp.Transform()); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

func samples(s *attunev1.Sample) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Samples{Samples: &attunev1.SampleBatch{Samples: []*attunev1.Sample{s}}}}
}

func reaction(r *attunev1.Reaction) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Reaction{Reaction: &attunev1.RecordedReaction{Reaction: r}}}
}

func waking(w *attunev1.Wake) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Tunlet{Tunlet: &attunev1.RecordedTunlet{
		Info: &attunev1.DescribeResponse{Wake: []*attunev1.Wake{w}},
	}}}
}
