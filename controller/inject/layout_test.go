// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"

	"github.com/attune-hpc/attune/controller/internal/abitest"
	"github.com/attune-hpc/attune/internal/objfile"
)

func TestLayoutEqualsHeader(t *testing.T) {
	want := abitest.Layout(t)
	for name, got := range map[string]uint64{
		"ATTUNE_ABI_MAGIC": abiMagic, "ATTUNE_ATTACH_VERSION": attachVersion, "ATTUNE_ATTACH_SOCKET": socketBytes,
		"ATTUNE_ATTACH_NAME": realAddress, "ATTUNE_ATTACH_TAKE_OVER": takeOver,
		"attune_attach": requestBytes, "attune_attach.version": requestVersion, "attune_attach.flags": requestFlags,
		"attune_attach.slot_count": requestSlots, "attune_attach.real_count": requestReals,
		"attune_attach.memory_size": requestMemorySize, "attune_attach.memory": requestMemory, "attune_attach.socket": requestSocket,
		"attune_attach_slot": slotBytes, "attune_attach_slot.address": slotAddress, "attune_attach_slot.hook": slotHook,
		"attune_attach_slot.relro": slotRELRO, "attune_attach_slot.error": slotError, "attune_attach_slot.old": slotOld,
		"attune_attach_slot.origin": slotOrigin, "attune_attach_slot.initial": slotInitial,
		"ATTUNE_ORIGIN_NAME": objfile.OriginName, "attune_origin.print": originPrint, "attune_origin.relocation": originRelocation,
		"attune_origin.symbol": originSymbol, "attune_origin.name": originNameAt,
		"attune_attach_real": realBytes, "attune_attach_real.name": 0, "attune_attach_real.address": realAddress,

		"ATTUNE_ENTRY_FILES_MADE": stateFilesMade, "ATTUNE_ENTRY_DONE": stateDone,
		"ATTUNE_ENTRY_GO_FILLED": goFilled, "ATTUNE_ENTRY_GO_READ": goRead,
		"ATTUNE_ENTRY_FILES": stepFiles, "ATTUNE_ENTRY_WAIT": stepWait, "ATTUNE_ENTRY_LOAD": stepLoad,
		"ATTUNE_ENTRY_ATTACH": stepAttach, "ATTUNE_ENTRY_THREAD": stepThread,
		"attune_entry": entryBytes, "attune_entry.base": entryBase, "attune_entry.size": entrySize,
		"attune_entry.frame": entryFrame, "attune_entry.unmap": entryUnmap, "attune_entry.create": entryCreate,
		"attune_entry.attributes": entryAttributes, "attune_entry.set_detached": entrySetDetached,
		"attune_entry.set_stack": entrySetStack, "attune_entry.open": entryOpen, "attune_entry.symbol": entrySymbol,
		"attune_entry.message": entryMessage, "attune_entry.attach": entryAttach, "attune_entry.path": entryPath,
		"attune_entry.request": entryRequest, "attune_entry.code": entryCode, "attune_entry.value": entryValue,
		"attune_entry.mode": entryMode, "attune_entry.from_memory": entryFromMemory,
		"attune_entry.milliseconds": entryMilliseconds, "attune_entry.go": entryGo, "attune_entry.state": entryState,
		"attune_entry.step": entryStep, "attune_entry.error": entryError, "attune_entry.thread": entryThread,
		"attune_entry.memory": entryMemory, "attune_entry.library": entryLibrary, "attune_entry.text": entryText,
	} {
		if value, ok := want[name]; !ok || value != got {
			t.Errorf("%s is %d, the header says %d (%v)", name, got, value, ok)
		}
	}
}
