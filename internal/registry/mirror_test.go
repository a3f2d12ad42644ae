// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"log/slog"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestComparisonsWithoutChange: who listens is told of what an Analyzer answers if it is new,
// and not each time that a node asks.
func TestComparisonsWithoutChange(t *testing.T) {
	value, err := proto.Marshal(&attunev1.Registration{Id: "r", Executable: "solver"})
	if err != nil {
		t.Fatal(err)
	}
	m := newMirror(&conn{log: slog.New(slog.DiscardHandler)}, bucketOrders, nil)
	m.once.Do(func() {}) // it does not ask by itself
	told := queue.NewBell()
	defer m.listen(told)()
	const key = keyRegistration + "r"
	put := &attunev1.StoredOrder{Key: key, Revision: 2, Value: value}
	for _, tt := range []struct {
		name   string
		answer *attunev1.OrdersResponse
		told   bool
	}{
		{"the first, without any", &attunev1.OrdersResponse{StoreUnixNano: 1, Revision: 1}, true},
		{"the same", &attunev1.OrdersResponse{StoreUnixNano: 1, Revision: 1}, false},
		{"one is put", &attunev1.OrdersResponse{StoreUnixNano: 1, Revision: 2, Keys: []string{key}, Orders: []*attunev1.StoredOrder{put}}, true},
		{"the same", &attunev1.OrdersResponse{StoreUnixNano: 1, Revision: 2, Keys: []string{key}}, false},
		{"another store", &attunev1.OrdersResponse{StoreUnixNano: 2, Revision: 1}, true},
		{"the same", &attunev1.OrdersResponse{StoreUnixNano: 2, Revision: 1}, false},
		{"it is put back", &attunev1.OrdersResponse{StoreUnixNano: 2, Revision: 2, Keys: []string{key}, Orders: []*attunev1.StoredOrder{put}}, true},
		{"it is deleted", &attunev1.OrdersResponse{StoreUnixNano: 2, Revision: 3}, true},
		{"the same", &attunev1.OrdersResponse{StoreUnixNano: 2, Revision: 3}, false},
	} {
		m.take(tt.answer)
		select {
		case <-told:
			if !tt.told {
				t.Errorf("%s: told of nothing", tt.name)
			}
		default:
			if tt.told {
				t.Errorf("%s: not told", tt.name)
			}
		}
	}
}
