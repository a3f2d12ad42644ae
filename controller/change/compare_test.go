// SPDX-License-Identifier: Apache-2.0

package change

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// want wants points of the hooks of those names, from index 1 on; none where a name is
// empty.
func want(hooks ...string) *attunev1.Want {
	w := &attunev1.Want{}
	for i, name := range hooks {
		if name != "" {
			w.Points = append(w.Points, at(uint32(i+1), name))
		}
	}
	return w
}

func at(index uint32, hook string) *attunev1.PointWant {
	return &attunev1.PointWant{Index: index, Point: &attunev1.MeasurePoint{
		Id: hook, Target: &attunev1.MeasurePoint_Hook{Hook: hook},
	}}
}

func every(nanos int64, w *attunev1.Want) *attunev1.Want {
	w.PeriodNanos = nanos
	return w
}

func reading(w *attunev1.Want, process uint64, tables ...uint32) *attunev1.Want {
	w.Tables = append(w.Tables, &attunev1.TableWant{Process: process, Tables: tables})
	return w
}

func refusal(index uint32, reason string) *attunev1.PointStatus {
	return &attunev1.PointStatus{Point: index, State: attunev1.PointState_POINT_STATE_REFUSED, Reason: reason}
}

func TestCompare(t *testing.T) {
	full := reading(every(50, want("a", "b")), 7, 1, 2)
	points := func(p ...*attunev1.PointWant) *attunev1.Want { return &attunev1.Want{Points: p} }
	tests := []struct {
		name            string
		inForce, wanted *attunev1.Want
		want            difference // next: what is wanted, unless it is set
	}{
		{"nothing to nothing", nil, nil, difference{next: &attunev1.Want{}}},
		{"the first want", nil, full, difference{come: full.GetPoints(), period: true, tables: true}},
		{"the same again", full, reading(every(50, want("a", "b")), 7, 1, 2), difference{kept: []uint16{1, 2}}},
		{"nothing any more", full, nil, difference{next: &attunev1.Want{}, gone: []uint16{1, 2}, period: true, tables: true}},
		{"points alone, as without a connection", full, want("a", "b"), difference{kept: []uint16{1, 2}, period: true, tables: true}},
		{"a point comes", want("a"), want("a", "b"), difference{kept: []uint16{1}, come: points(at(2, "b")).GetPoints()}},
		{"a point goes", want("a", "b"), want("", "b"), difference{kept: []uint16{2}, gone: []uint16{1}}},
		{"one goes and one comes", want("a"), want("", "b"), difference{gone: []uint16{1}, come: points(at(2, "b")).GetPoints()}},
		{"an index is another point's", want("a", "b"), want("a", "c"), difference{kept: []uint16{1}, gone: []uint16{2}, come: points(at(2, "c")).GetPoints()}},
		{"a point has another index", want("a"), points(at(9, "a")), difference{gone: []uint16{1}, come: points(at(9, "a")).GetPoints()}},
		{"another order", want("a", "b"), points(at(2, "b"), at(1, "a")), difference{kept: []uint16{2, 1}}},
		{"a point without a spec", points(&attunev1.PointWant{Index: 1}), points(&attunev1.PointWant{Index: 1}), difference{kept: []uint16{1}}},
		{"indexes that cannot be", want("a"), points(at(0, "a"), at(1, "a"), at(65536, "b"), at(65535, "c")), difference{
			next: points(at(1, "a"), at(65535, "c")), kept: []uint16{1}, come: points(at(65535, "c")).GetPoints(),
			refused: []*attunev1.PointStatus{refusal(0, "point index 0 is outside 1..65535"), refusal(65536, "point index 65536 is outside 1..65535")},
		}},
		{"one index twice", nil, points(at(3, "a"), at(3, "b")), difference{
			next: points(at(3, "a")), come: points(at(3, "a")).GetPoints(),
			refused: []*attunev1.PointStatus{refusal(3, "two measure points have the index 3")},
		}},
		{"another period", every(50, want("a")), every(250, want("a")), difference{kept: []uint16{1}, period: true}},
		{"a period below 0", nil, every(-1, want()), difference{next: &attunev1.Want{}}},
		{"another table", reading(want(), 7, 1), reading(want(), 7, 2), difference{tables: true}},
		{"of another process", reading(want(), 7, 1), reading(want(), 8, 1), difference{tables: true}},
		{"of one process more", reading(want(), 7, 1), reading(reading(want(), 7, 1), 8, 1), difference{tables: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want.next == nil {
				tt.want.next = tt.wanted
			}
			got := compare(tt.inForce, tt.wanted)
			if diff := cmp.Diff(tt.want, got, protocmp.Transform(), cmp.AllowUnexported(difference{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if again := compare(got.next, got.next); len(again.gone)+len(again.come)+len(again.refused) > 0 || again.period || again.tables {
				t.Errorf("done once, it is still to be done: %+v", again)
			}
		})
	}
}

// BenchmarkCompare takes in a want of so many points of functions, one in each of as
// many processes, of which one is new.
func BenchmarkCompare(b *testing.B) {
	for _, points := range []int{30, 1000, 10000} {
		b.Run(strconv.Itoa(points), func(b *testing.B) {
			w := &attunev1.Want{PeriodNanos: 50e6}
			for i := range uint32(points) {
				w.Points = append(w.Points, &attunev1.PointWant{Index: 1 + i, Point: &attunev1.MeasurePoint{
					Id: "dispatch-" + strconv.Itoa(int(i)), Processes: []uint64{uint64(i)}, Delivery: attunev1.Delivery_DELIVERY_EVENT,
					Target: &attunev1.MeasurePoint_Function{Function: &attunev1.FunctionTarget{
						Object: "libgomp.so.1", Symbols: []string{"GOMP_parallel", "GOMP_barrier"},
					}},
				}})
			}
			data, err := proto.Marshal(w)
			if err != nil {
				b.Fatal(err)
			}
			w.Points = w.Points[1:]
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				wanted := &attunev1.Want{}
				if err := proto.Unmarshal(data, wanted); err != nil {
					b.Fatal(err)
				}
				if d := compare(w, wanted); len(d.come) != 1 {
					b.Fatalf("%d points come", len(d.come))
				}
			}
			b.ReportMetric(float64(len(data)), "bytes")
		})
	}
}
