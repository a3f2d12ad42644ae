// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestBeginForNobody: a process that was held up begins nothing for a caller who has given up
// meanwhile, since nobody would end it.
func TestBeginForNobody(t *testing.T) {
	p := newPackageServer(map[string]func() Tunlet{"one": func() Tunlet { return nil }}, func(string, string) {}, func(int) {})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.BeginTunlet(over, &attunev1.BeginTunletRequest{Tunlet: "one"}); status.Code(err) != codes.Canceled || len(p.instances) != 0 {
		t.Errorf("%v, and %d instances", err, len(p.instances))
	}
	if _, err := p.BeginTunlet(t.Context(), &attunev1.BeginTunletRequest{Tunlet: "one"}); err != nil || len(p.instances) != 1 {
		t.Errorf("%v, and %d instances", err, len(p.instances))
	}
}
