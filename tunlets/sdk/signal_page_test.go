// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const signalsPage = "../../docs/reference/signals.md"

// The reference page has every field of the details.
func TestSignalsPage(t *testing.T) {
	data, err := os.ReadFile(signalsPage)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{} // the first of each name: signals come before details
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		if name := strings.TrimSpace(cells[1]); rows[name] == nil {
			rows[name] = cells
		}
	}
	for _, m := range []proto.Message{
		&attunev1.ThreadDetail{}, &attunev1.SocketDetail{}, &attunev1.TcpDetail{}, &attunev1.PipeDetail{}, &attunev1.MemoryDetails{},
	} {
		fields := m.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			if name := string(fields.Get(i).Name()); name != "error" && rows["`"+name+"`"] == nil {
				t.Errorf("%s: %s of %T is missing", signalsPage, name, m)
			}
		}
	}
	for kind := sdk.DetailThreads; kind <= sdk.DetailMemory; kind++ {
		section := "`sdk.Detail" + strings.ToUpper(kind.String()[:1]) + kind.String()[1:] + "`"
		if !strings.Contains(string(data), section) {
			t.Errorf("%s: no section with %s", signalsPage, section)
		}
	}
}
