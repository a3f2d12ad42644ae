// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/internal/abitest"
	"github.com/attune-hpc/attune/controller/ring/internal/hookdef"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// programNames are those that package measure mirrors and compares.
var programNames = regexp.MustCompile(`^ATTUNE_(CAPTURES|PREDICATES|STEPS|STRING|STRINGS|KEYS|STAYS_MAPPED|SIGN|STRING_CUT)$|^ATTUNE_(FROM|TYPE|KIND|IS|CONTINUATION|WORDS|CONTINUATIONS)_|^attune_(program|capture|predicate)(\.|$)`)

// gateNames are those that packages attach and inject mirror and compare.
var gateNames = regexp.MustCompile(`^$|ATTUNE_(GATE|HELLO|WELCOME|READY|ATTACH|ENTRY|ORIGIN)_|attune_(hello|welcome|ready|go|attach|entry|origin)`)

func TestLayoutEqualsHeader(t *testing.T) {
	want := abitest.Layout(t)
	for name := range want {
		if gateNames.MatchString(name) || programNames.MatchString(name) {
			delete(want, name)
		}
	}
	if diff := cmp.Diff(want, mirror()); diff != "" {
		t.Errorf("dmlib_abi.h (-) and layout.go (+) differ:\n%s", diff)
	}
}

func mirror() map[string]uint64 {
	return map[string]uint64{
		"ATTUNE_ABI_MAGIC":       abiMagic,
		"ATTUNE_ABI_VERSION":     abiVersion,
		"ATTUNE_CACHE_LINE":      cacheLine,
		"ATTUNE_HOOK_COUNT":      HookCount,
		"ATTUNE_STUB_COUNT":      StubCount,
		"ATTUNE_POINT_COUNT":     PointCount,
		"ATTUNE_SHARER_COUNT":    sharerCount,
		"ATTUNE_SHARER_FIRST":    sharerFirst,
		"ATTUNE_HIST_BUCKETS":    HistogramBuckets,
		"ATTUNE_MAILBOX_COUNT":   MailboxSize,
		"ATTUNE_RECORD_DURATION": attunev1.RecordDuration,
		"ATTUNE_RECORD_SAMPLED":  attunev1.RecordSampled,
		"ATTUNE_RECORD_UNTIMED":  attunev1.RecordUntimed,

		"ATTUNE_CTL_AGGREGATE": ctlAggregate,
		"ATTUNE_CTL_EVENT":     ctlEvent,
		"ATTUNE_CTL_DURATION":  ctlDuration,
		"ATTUNE_CTL_MAILBOX":   ctlMailbox,
		"ATTUNE_CTL_REGISTER":  ctlRegister,
		"ATTUNE_CTL_UNTIMED":   ctlUntimed,
		"ATTUNE_CTL_PROGRAM":   ctlProgram,
		"ATTUNE_CTL_SHARED":    ctlShared,
		"ATTUNE_CTL_TIMED":     ctlTimed,

		"ATTUNE_RECORD_CONTINUATION": attunev1.RecordContinuation,
		"ATTUNE_RECORD_FOLLOW_SHIFT": attunev1.RecordFollow,
		"ATTUNE_TABLE_BUCKETS":       tableBuckets,

		"ATTUNE_SLOT_FREE":   slotFree,
		"ATTUNE_SLOT_USED":   slotUsed,
		"ATTUNE_SLOT_CLOSED": slotClosed,

		"ATTUNE_CHILD_NONE":     childNone,
		"ATTUNE_CHILD_ASKS":     childAsks,
		"ATTUNE_CHILD_ATTENDED": childAttended,
		"ATTUNE_CHILD_WAITS":    childWaits,
		"ATTUNE_CHILD_MAY":      childMay,
		"ATTUNE_CHILD_MAY_NOT":  childMayNot,

		"ATTUNE_CMD_EMPTY":   cmdEmpty,
		"ATTUNE_CMD_POSTED":  cmdPosted,
		"ATTUNE_CMD_CLAIMED": cmdClaimed,
		"ATTUNE_CMD_DONE":    cmdDone,

		"ATTUNE_ISLAND_CALL":   IslandCall,
		"ATTUNE_ISLAND_NUMBER": IslandNumber,

		"ATTUNE_OP_NOP":   uint64(OpNop),
		"ATTUNE_OP_CALL":  uint64(OpCall),
		"ATTUNE_OP_LOAD":  uint64(OpLoad),
		"ATTUNE_OP_STORE": uint64(OpStore),
		"ATTUNE_OP_STUB":  uint64(OpStub),
		"ATTUNE_OP_GOT":   uint64(OpGOT),
		"ATTUNE_OP_MAP":   uint64(OpMap),

		"ATTUNE_AT_ALLOC":   uint64(AtAlloc),
		"ATTUNE_AT_LOCK":    uint64(AtLock),
		"ATTUNE_AT_IO":      uint64(AtIO),
		"ATTUNE_AT_STUB":    uint64(AtStub),
		"ATTUNE_AT_PATCH":   uint64(AtPatch),
		"ATTUNE_AT_GATE":    uint64(AtGate),
		"ATTUNE_AT_STOPPED": uint64(AtStopped),

		"attune_header":                headerSize,
		"attune_header.magic":          headerMagic,
		"attune_header.version":        headerVersion,
		"attune_header.header_size":    headerHeaderSize,
		"attune_header.total_size":     headerTotalSize,
		"attune_header.control_offset": headerControlOffset,
		"attune_header.mailbox_offset": headerMailboxOffset,
		"attune_header.slot_offset":    headerSlotOffset,
		"attune_header.ring_offset":    headerRingOffset,
		"attune_header.point_count":    headerPointCount,
		"attune_header.slot_count":     headerSlotCount,
		"attune_header.ring_count":     headerRingCount,
		"attune_header.ring_records":   headerRingRecords,
		"attune_header.epoch":          headerEpoch,
		"attune_header.detached":       headerDetached,
		"attune_header.program_offset": headerProgramOffset,
		"attune_header.table_offset":   headerTableOffset,
		"attune_header.program_count":  headerProgramCount,
		"attune_header.table_count":    headerTableCount,
		"attune_header.pid":            headerPID,

		"attune_header.controller_start":     headerControllerStart,
		"attune_header.controller_namespace": headerControllerNamespace,
		"attune_header.controller_pid":       headerControllerPID,

		"attune_header.state":        headerState,
		"attune_header.dmlib_base":   headerDMLibBase,
		"attune_header.stub_entry":   headerStubEntry,
		"attune_header.stub_size":    headerStubSize,
		"attune_header.stub_count":   headerStubCount,
		"attune_header.stub_target":  headerStubTarget,
		"attune_header.patch_entry":  headerPatchEntry,
		"attune_header.stub_unbound": headerStubUnbound,
		"attune_header.attend_entry": headerAttendEntry,
		"attune_header.patch_exit":   headerPatchExit,
		"attune_header.child":        headerChild,
		"attune_header.common_used":  headerCommonUsed,

		"attune_open_call":       openCallSize,
		"attune_open_call.stack": openCallStack,
		"attune_open_call.begun": openCallBegun,
		"attune_open_call.value": openCallValue,
		"attune_open_call.extra": openCallExtra,
		"attune_open_call.point": openCallPoint,
		"attune_slot.open":       slotOpen,
		"attune_slot.calls":      slotCalls,
		"ATTUNE_OPEN_CALLS":      openCalls,

		"attune_header.lost_no_slot": headerLostNoSlot,
		"attune_header.fork_count":   headerForkCount,
		"attune_header.ring_next":    headerRingNext,
		"attune_header.slots_used":   headerSlotsUsed,

		"attune_point_control":             controlSize,
		"attune_point_control.word":        controlWord,
		"attune_point_control.sample_mask": controlSampleMask,
		"attune_point_control.min_value":   controlMinValue,
		"attune_point_control.max_value":   controlMaxValue,
		"attune_point_control.parameter":   controlParameter,
		"attune_point_control.program":     controlProgram,

		"attune_program_slot":            programSlotSize,
		"attune_program_slot.program":    programSlotProgram,
		"attune_program_slot.unreadable": programSlotUnreadable,

		"attune_keyed":           keyedSize,
		"attune_keyed.count":     keyedCount,
		"attune_keyed.sum":       keyedSum,
		"attune_keyed.least":     keyedLeast,
		"attune_keyed.greatest":  keyedGreatest,
		"attune_keyed.histogram": keyedHistogram,

		"attune_table":         tableSize,
		"attune_table.keys":    tableKeys,
		"attune_table.zero":    tableZero,
		"attune_table.key":     tableKey,
		"attune_table.rest":    tableRest,
		"attune_table.of_zero": tableOfZero,
		"attune_table.bucket":  tableBucket,

		"attune_continuation":        attunev1.RecordSize,
		"attune_continuation.first":  continuationFirst,
		"attune_continuation.point":  recordPoint,
		"attune_continuation.flags":  recordFlags,
		"attune_continuation.kinds":  continuationKinds,
		"attune_continuation.second": continuationSecond,
		"attune_continuation.third":  continuationThird,

		"attune_aggregate":           aggregateSize,
		"attune_aggregate.count":     aggregateCount,
		"attune_aggregate.sum":       aggregateSum,
		"attune_aggregate.min":       aggregateMin,
		"attune_aggregate.max":       aggregateMax,
		"attune_aggregate.epoch":     aggregateEpoch,
		"attune_aggregate.calls":     aggregateCalls,
		"attune_aggregate.histogram": aggregateHistogram,

		"attune_slot":            slotSize,
		"attune_slot.state":      slotState,
		"attune_slot.tid":        slotTID,
		"attune_slot.ring":       slotRing,
		"attune_slot.lost":       slotLost,
		"attune_slot.head":       slotHead,
		"attune_slot.tail":       slotTail,
		"attune_slot.aggregates": slotAggregates,

		"attune_record":        attunev1.RecordSize,
		"attune_record.time":   recordTime,
		"attune_record.point":  recordPoint,
		"attune_record.flags":  recordFlags,
		"attune_record.thread": recordThread,
		"attune_record.value":  recordValue,
		"attune_record.extra":  recordExtra,

		"attune_command":            commandSize,
		"attune_command.state":      commandState,
		"attune_command.op":         commandOp,
		"attune_command.at":         commandAt,
		"attune_command.thread":     commandThread,
		"attune_command.id":         commandID,
		"attune_command.args":       commandArgs,
		"attune_command.result":     commandResult,
		"attune_command.error":      commandError,
		"attune_command.done_by":    commandDoneBy,
		"attune_command.done_at":    commandDoneAt,
		"attune_command.done_point": commandDonePoint,
		"attune_command.point":      commandPoint,
	}
}

func TestHooksAreGenerated(t *testing.T) {
	def, err := os.ReadFile(abitest.Header(t, "dmlib_hooks.def"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := hookdef.Generate(def)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("hooks.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("hooks.go is stale: go generate ./controller/ring\n%s", cmp.Diff(string(want), string(got)))
	}
}

func TestHooksFitTheLayout(t *testing.T) {
	for _, h := range Hooks() {
		if h.Index >= HookCount || h.Family&atAny == 0 {
			t.Errorf("hook %+v is outside the layout", h)
		}
		if got, ok := HookByName(h.Name); !ok || got != h {
			t.Errorf("hook %s is found as %+v", h.Name, got)
		}
	}
	if _, ok := HookByName("no_such_function"); ok {
		t.Error("found a hook that is not there")
	}
}

// TestRecordsTravelAsTheyLie compares the protocol's reading of a record with the
// offsets that were compared with the C compiler's.
func TestRecordsTravelAsTheyLie(t *testing.T) {
	r := attunev1.Record{Monotonic: 1, Point: 2, Flags: 3, Thread: 4, Value: 5, Extra: 6}
	packed := attunev1.AppendRecord(nil, r, attunev1.Captured{Kind: 1, Bits: 7}, attunev1.Captured{Kind: 1, Bits: 8}, attunev1.Captured{Kind: 1, Bits: 9})
	want := make([]byte, 2*attunev1.RecordSize)
	unit := want[attunev1.RecordSize:]
	for _, at := range []struct {
		bytes []byte
		value byte
	}{
		{want[recordTime:], 1}, {want[recordPoint:], 2}, {want[recordFlags:], 3}, {want[recordFlags+1:], 1},
		{want[recordThread:], 4}, {want[recordValue:], 5}, {want[recordExtra:], 6},
		{unit[continuationFirst:], 7}, {unit[recordFlags:], attunev1.RecordContinuation}, {unit[continuationKinds:], 0x11},
		{unit[continuationKinds+1:], 1}, {unit[continuationSecond:], 8}, {unit[continuationThird:], 9},
	} {
		at.bytes[0] = at.value
	}
	if diff := cmp.Diff(want, packed); diff != "" {
		t.Error(diff)
	}
}
