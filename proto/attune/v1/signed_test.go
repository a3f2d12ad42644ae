// SPDX-License-Identifier: Apache-2.0

package attunev1

import (
	"testing"

	"google.golang.org/protobuf/proto"
)

// What an argument of a static probe is, the probe says: it may be negative.
func TestSignedCapture(t *testing.T) {
	parameter := &Capture{Name: "n", Source: &Capture_Parameter{}}
	behind := proto.CloneOf(parameter)
	behind.Dereference = []int32{8}
	typed := proto.CloneOf(parameter)
	typed.Type = CaptureType_CAPTURE_TYPE_U32
	static := &MeasurePoint_Usdt{Usdt: &UsdtTarget{Name: "work"}}
	tests := []struct {
		name string
		spec *MeasurePoint
		want bool
	}{
		{"argument", &MeasurePoint{Target: static, Captures: []*Capture{parameter}}, true},
		{"argument with a type", &MeasurePoint{Target: static, Captures: []*Capture{typed}}, false},
		{"memory behind it", &MeasurePoint{Target: static, Captures: []*Capture{behind}}, false},
		{"parameter", &MeasurePoint{Captures: []*Capture{parameter}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := SignedCapture(tt.spec, "n"); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
