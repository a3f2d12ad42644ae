// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// FuzzDecode: whatever lies in the registry, of whatever version, is a record
// that can be written again, or an error.
func FuzzDecode(f *testing.F) {
	for _, seed := range []struct {
		bucket, key string
		record      proto.Message
	}{
		{bucketOrders, keyRegistration + "r", &attunev1.Registration{Id: "r", Executable: "solver", Job: &attunev1.Job{Kind: "slurm", Id: "1"}}},
		{bucketOrders, keyOwner + "r", &attunev1.OwnerRecord{Registration: "r", Epoch: 7, Analyzer: &attunev1.AnalyzerRecord{Id: "a"}}},
		{bucketOrders, "r", &attunev1.Registration{}},
		{bucketAnalyzers, "a", &attunev1.AnalyzerRecord{Id: "a", Addresses: []string{"unix:/a"}}},
		{bucketSessions, "s", &attunev1.SessionRecord{Id: "s", KeptChanges: []*attunev1.KeptChange{{Id: "k"}}}},
	} {
		value, err := proto.Marshal(seed.record)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed.bucket, seed.key, value)
	}
	f.Fuzz(func(t *testing.T, bucket, key string, value []byte) {
		record, err := decode(bucket, key, value)
		if err != nil {
			return
		}
		written, err := proto.Marshal(record)
		if err != nil {
			t.Fatalf("%T cannot be written again: %v", record, err)
		}
		again, err := decode(bucket, key, written)
		if err != nil || !proto.Equal(record, again) {
			t.Errorf("%v is read again as %v, %v", record, again, err)
		}
	})
}

// FuzzCheckID: an id is one key of a bucket, with nothing in it that means more
// than itself to the registry.
func FuzzCheckID(f *testing.F) {
	for _, id := range []string{"slurm-12-1000", "pbs-12.server-1000", "", ".", "a..b", "a.", ">", "*", "a b", "a\n", "ä"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if checkID("x", id) != nil {
			return
		}
		if strings.ContainsAny(id, "*> \t\r\n") {
			t.Errorf("%q is an id", id)
		}
		for part := range strings.SplitSeq(id, ".") {
			if part == "" {
				t.Errorf("%q is an id, with an empty part", id)
			}
		}
	})
}
