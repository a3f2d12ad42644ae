// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A service that was started a moment ago does not say that nothing is registered.
func TestWhatIsRegisteredIsWaitedFor(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration // the registry tells; 0: it does not
		code  codes.Code
	}{{"told soon", time.Second, codes.OK}, {"not told", 0, codes.Unavailable}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Service{table: newTable("a")}
				if s.Ready() {
					t.Error("ready before anything is known")
				}
				if tt.after > 0 {
					time.AfterFunc(tt.after, func() {
						s.table.see(registry.View{Registrations: map[string]*attunev1.Registration{"r": {}}})
					})
				}
				all, err := s.table.awaitRegistrations(t.Context())
				if status.Code(err) != tt.code || (len(all) == 1) != (tt.code == codes.OK) || s.Ready() != (tt.code == codes.OK) {
					t.Errorf("%v, %v", all, err)
				}
			})
		})
	}
}
