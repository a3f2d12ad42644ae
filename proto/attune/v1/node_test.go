// SPDX-License-Identifier: Apache-2.0

package attunev1

import "testing"

// TestKeepOwn: the parts of others go, whoever's registration they belong to.
func TestKeepOwn(t *testing.T) {
	record := &ControllerRecord{
		Shares:     []*SessionShare{{Registration: "site-solver", Uid: 1000, Processes: 3}, {Registration: "site-solver", Uid: 1001, Processes: 4}},
		Mismatches: []*Mismatch{{Uid: 1001}},
		Troubles:   []*Trouble{{Text: "the disk is full"}, {Uid: new(uint32(1001)), Text: "a job is given up"}, {Uid: new(uint32(0)), Text: "root's, too"}},
	}
	record.KeepOwn(func(uid uint32) bool { return uid == 1000 })
	if len(record.GetShares()) != 1 || record.GetShares()[0].GetProcesses() != 3 || len(record.GetMismatches()) != 0 ||
		len(record.GetTroubles()) != 1 || record.GetTroubles()[0].Uid != nil {
		t.Errorf("left: %v", record)
	}
}
