// SPDX-License-Identifier: Apache-2.0

package track

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// connectorFixtures were recorded from Linux 6.18 when a shell ran /bin/true.
func connectorFixtures() map[string]string {
	const head = "4c0000000300000000000000000000000100000001000000334300000000000028000000"
	return map[string]string{
		"answer": head + "00000000000000000010000000000000" + "000000000000000000000000000000000000000000000000",
		"fork":   head + "01000000000000000020000000000000" + "847f0000847f0000b07f0000b07f00000000000000000000",
		"thread": head + "01000000000000000020000000000000" + "847f0000847f0000b17f0000847f00000000000000000000",
		"exec":   head + "02000000000000000030000000000000" + "b07f0000b07f000000000000000000000000000000000000",
		"exit":   head + "00000080000000000040000000000000" + "b07f0000b07f00000001000011000000847f0000847f0000",
		"name":   head + "00020000000000000040000000000000" + "b07f0000b07f00007472756500000000000000000000000",
	}
}

func mustDecode(t testing.TB, name string) []byte {
	t.Helper()
	text := connectorFixtures()[name]
	data, err := hex.DecodeString(text[:len(text)&^1])
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestConnectorEvents(t *testing.T) {
	tests := []struct {
		fixture string
		want    Event
		told    bool
	}{
		{"answer", Event{}, false},
		{"fork", Event{Kind: Fork, PID: 0x7fb0, Parent: 0x7f84, Time: 0x2000}, true},
		{"thread", Event{}, false},
		{"exec", Event{Kind: Exec, PID: 0x7fb0, Time: 0x3000}, true},
		{"exit", Event{Kind: Exit, PID: 0x7fb0, Time: 0x4000, Status: 256, HasStatus: true}, true},
		{"name", Event{}, false},
	}
	for _, test := range tests {
		t.Run(test.fixture, func(t *testing.T) {
			message, err := parseConnector(mustDecode(t, test.fixture))
			if err != nil {
				t.Fatal(err)
			}
			got, told := message.event()
			if told != test.told {
				t.Fatalf("told: %v, want %v", told, test.told)
			}
			if diff := cmp.Diff(test.want, got); told && diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConnectorShortMessages(t *testing.T) {
	for _, name := range []string{"fork", "exit"} {
		data := mustDecode(t, name)
		for n := range eventStart + eventHead + 4*4 {
			if _, err := parseConnector(data[:n]); err == nil {
				t.Errorf("%s of %d bytes is accepted", name, n)
			}
		}
	}
}

func FuzzParseConnector(f *testing.F) {
	for name := range connectorFixtures() {
		f.Add(mustDecode(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := parseConnector(data); err == nil {
			if e, told := m.event(); told && (e.Kind < Fork || e.Kind > Exit) {
				t.Errorf("event %+v", e)
			}
		}
	})
}
