// SPDX-License-Identifier: Apache-2.0

package procevent

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeEvent(t *testing.T) {
	raw := processEventsProcessEvent{
		Time: 7, StartTime: 12_345_678_900, Kind: processEventsProcessEventKindPROCESS_EXIT,
		Slot: 3, Tgid: 10, Parent: 9, Uid: 1000, Status: 5 << 8,
	}
	for i, c := range "solver" {
		raw.Comm[i] = int8(c)
	}
	var buffer bytes.Buffer
	if err := binary.Write(&buffer, binary.NativeEndian, &raw); err != nil {
		t.Fatal(err)
	}
	got, err := decodeEvent(buffer.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := Event{
		Kind: EventExit, Slot: 3, PID: 10, Parent: 9, UID: 1000,
		Status: 5 << 8, Time: 7, Start: 12_345_678_900 * time.Nanosecond, Command: "solver",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.Status.ExitStatus() != 5 || got.StartTicks() != 1234 || got.Kind.String() != "exit" {
		t.Errorf("status %d, ticks %d, kind %v", got.Status.ExitStatus(), got.StartTicks(), got.Kind)
	}
	if _, err := decodeEvent(buffer.Bytes()[1:]); err == nil {
		t.Error("short event accepted")
	}
}
