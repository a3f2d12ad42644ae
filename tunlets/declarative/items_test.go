// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Expressions see every field that the protocol has of an item, by its name
// without the unit of a time.
func TestItemsHaveAllFields(t *testing.T) {
	unit := strings.NewReplacer("_nanos", "", "_micros", "", "_millis", "")
	needless := []string{"start_ticks", "tcp"} // part of what an item is known by; its fields are the socket's
	for _, tt := range []struct {
		list    string
		message proto.Message
	}{
		{"threads", &attunev1.ThreadDetail{}}, {"sockets", &attunev1.SocketDetail{}}, {"sockets", &attunev1.TcpDetail{}},
		{"pipes", &attunev1.PipeDetail{}},
	} {
		have := strings.Split(lists()[tt.list].fields(), ", ")
		fields := tt.message.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			name := string(fields.Get(i).Name())
			if !slices.Contains(have, unit.Replace(name)) && !slices.Contains(needless, name) {
				t.Errorf("%s lack %s of %T", tt.list, name, tt.message)
			}
		}
	}
	fields := (&attunev1.MemoryDetails{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if name := string(fields.Get(i).Name()); name != "error" && memoryFields()[name] == nil {
			t.Errorf("memory lacks %s", name)
		}
	}
}
