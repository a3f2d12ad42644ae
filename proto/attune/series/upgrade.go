// SPDX-License-Identifier: Apache-2.0

package series

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Upgrade turns what earlier versions wrote into a frame of a recording into what
// is written there now. It does nothing to a frame of this version.
func Upgrade(f *attunev1.RecordingFrame) {
	for _, s := range f.GetSamples().GetSamples() {
		upgradeSample(s)
	}
	for _, w := range f.GetTunlet().GetInfo().GetWake() {
		upgradeLevels(w.GetLevels())
		if w.GetTable() == 0 {
			w.Table, w.Detail = uint32(w.GetDetail()), attunev1.DetailKind_DETAIL_KIND_UNSPECIFIED
		}
	}
	reaction := f.GetReaction().GetReaction()
	for _, i := range reaction.GetInterests() {
		upgradeLevels(i.GetLevels())
	}
	for _, i := range reaction.GetDetails() {
		want := &attunev1.TableWant{Process: i.GetProcess()}
		for _, kind := range i.GetKinds() {
			want.Tables = append(want.Tables, uint32(kind))
		}
		reaction.Wants = append(reaction.Wants, want)
	}
	if reaction != nil {
		reaction.Details = nil
	}
}

// upgradeSample makes tables of readings and details. The numbers of signals are
// those of their series, the names of fields those of theirs.
func upgradeSample(s *attunev1.Sample) {
	if len(s.GetReadings()) > 0 {
		readings := make([]Reading, 0, len(s.GetReadings()))
		for _, r := range s.GetReadings() {
			readings = append(readings, Reading{ID(r.GetSignal()), uint64(r.GetValue())})
		}
		s.Tables, s.Readings = append(s.Tables, SignalTable(readings...)), nil
	}
	if s.GetDetails() == nil {
		return
	}
	kinds := s.GetDetails().ProtoReflect()
	for i := range details {
		field := kinds.Descriptor().Fields().ByName(protoreflect.Name(details[i].Name))
		if field != nil && kinds.Has(field) {
			s.Tables = append(s.Tables, upgradeTable(&details[i], kinds.Get(field).Message())...)
		}
	}
	s.Details = nil
}

func upgradeLevels(levels []*attunev1.Level) {
	for _, l := range levels {
		if l.GetSeries() == 0 {
			l.Series, l.Signal = uint32(l.GetSignal()), attunev1.Signal_SIGNAL_UNSPECIFIED
		}
	}
}

// upgradeTable makes a table of what was read of one kind.
func upgradeTable(t *Table, m protoreflect.Message) []*attunev1.Table {
	fields := m.Descriptor().Fields()
	first := &attunev1.Table{Table: uint32(t.ID), Of: t.Of, Error: m.Get(fields.ByName("error")).String(), Total: 1}
	out := []*attunev1.Table{first}
	if t.Single() {
		if first.Error == "" {
			upgradeRow(t, m).addTo(&out)
		}
		return out
	}
	first.Total = uint32(m.Get(fields.ByName("total")).Uint())
	items := m.Get(fields.ByName("items")).List()
	for i := range items.Len() {
		upgradeRow(t, items.Get(i).Message()).addTo(&out)
	}
	return out
}

// upgradeRow makes a row of a message, whose fields have the names of the series, in
// a message of their own where they are a part.
func upgradeRow(t *Table, m protoreflect.Message) *cells {
	c := &cells{}
	var number int64
	var life uint64
	for _, s := range t.Series {
		in := m
		if s.Part != "" {
			part := m.Descriptor().Fields().ByName(protoreflect.Name(s.Part))
			if part == nil || !m.Has(part) {
				continue
			}
			in = m.Get(part).Message()
		}
		field := in.Descriptor().Fields().ByName(protoreflect.Name(s.Name))
		if field == nil {
			continue // a series of today
		}
		switch v := in.Get(field); s.Kind {
		case KindNumber:
			number = v.Int()
		case KindLife:
			life = v.Uint()
		case KindText:
			c.setText(s.ID, oldText(field, v))
		case KindTruth:
			c.setTruth(s.ID, v.Bool())
		default:
			c.setNumber(s.ID, v.Uint())
		}
	}
	if !t.Single() {
		c.setSubject(number, life)
	}
	return c
}

// oldText is a text, or the name of an enum's value without what all of them begin
// with: tcp of SOCKET_KIND_TCP.
func oldText(field protoreflect.FieldDescriptor, v protoreflect.Value) string {
	if field.Kind() != protoreflect.EnumKind {
		return v.String()
	}
	value := field.Enum().Values().ByNumber(v.Enum())
	if value == nil || v.Enum() == 0 {
		return ""
	}
	name := string(value.Name())
	return strings.ToLower(name[strings.LastIndexByte(name, '_')+1:])
}
