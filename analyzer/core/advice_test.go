// SPDX-License-Identifier: Apache-2.0

package core

import (
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Descriptor 0 is a descriptor, not "everywhere".
func TestTextOfSystemSettings(t *testing.T) {
	zero := int32(0)
	value := &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: 1}}
	tests := []struct {
		name string
		on   *int32
		want string
	}{
		{"everywhere", nil, "set socket.tcp_nodelay=1"},
		{"one", &zero, "set socket.tcp_nodelay@0=1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			action := &attunev1.Action{Kind: &attunev1.Action_System{
				System: &attunev1.SystemSetting{Name: "socket.tcp_nodelay", On: tt.on, Value: value},
			}}
			if got := ActionText(action); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if newValue(action) != value {
				t.Error("its value is not known to the bounds")
			}
		})
	}
}
