// SPDX-License-Identifier: Apache-2.0

package procevent

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
)

// AnyUser is for Name.UID: whoever executes it.
const AnyUser = ^uint32(0)

// Name is a file name by which processes are found when they execute it.
type Name struct {
	// Text is the base name, or how it begins. More than 15 bytes do not count.
	Text string
	// Beginning says that any name that begins so is wanted.
	Beginning bool
	// UID is the user who is meant, or AnyUser.
	UID uint32
}

// nameBytes is what the kernel keeps of a name, without the zero byte.
const nameBytes = 15

// wantedNames is what the kernel was told.
type wantedNames struct {
	mu   sync.Mutex // guards keys
	keys map[processEventsNameKey]uint32
}

// Want says which names are wanted from now on. It is for a node-wide object.
// While the names change, those that were wanted before and after are found
// without a gap.
func (p *ProcessEvents) Want(names []Name) error {
	wanted := nameKeys(names)
	w := &p.wanted
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys == nil {
		w.keys = make(map[processEventsNameKey]uint32)
	}
	for key, uid := range wanted {
		if known, ok := w.keys[key]; ok && known == uid {
			continue
		}
		if err := p.objects.WantedNames.Put(&key, &uid); err != nil {
			return fmt.Errorf("want name: %w", err)
		}
		w.keys[key] = uid
	}
	for key := range w.keys {
		if _, ok := wanted[key]; ok {
			continue
		}
		if err := p.objects.WantedNames.Delete(&key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("want name no more: %w", err)
		}
		delete(w.keys, key)
	}
	return nil
}

// nameKeys makes the table that the kernel searches for the longest beginning
// of a name. A longer beginning must also let in whoever a shorter one lets in.
func nameKeys(names []Name) map[processEventsNameKey]uint32 {
	keys := make(map[processEventsNameKey]uint32, len(names))
	for _, name := range names {
		join(keys, nameKey(name), name.UID)
	}
	for key := range keys {
		for shorter, uid := range keys {
			if begins(key, shorter) {
				join(keys, key, uid)
			}
		}
	}
	return keys
}

// join adds a user to those who are meant by a key.
func join(keys map[processEventsNameKey]uint32, key processEventsNameKey, uid uint32) {
	if present, ok := keys[key]; ok && present != uid {
		uid = AnyUser
	}
	keys[key] = uid
}

func nameKey(name Name) (key processEventsNameKey) {
	text := name.Text[:min(len(name.Text), nameBytes)]
	for i := range len(text) {
		key.Name[i] = int8(text[i])
	}
	key.Bits = uint32(8 * len(text))
	if !name.Beginning {
		key.Bits += 8 // its zero byte
	}
	return key
}

// begins says whether every name that key finds begins as shorter says.
func begins(key, shorter processEventsNameKey) bool {
	bytes := shorter.Bits / 8
	return shorter.Bits < key.Bits && slices.Equal(key.Name[:bytes], shorter.Name[:bytes])
}
