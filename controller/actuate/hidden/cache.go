// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"encoding/json"
	"fmt"

	"github.com/attune-hpc/attune/internal/filecache"
)

// maxFiles bounds the files of the cache.
const maxFiles = 4096

// kept is a file of the cache: what was found in one object.
type kept struct {
	Identity identity `json:"identity"`
	// Variables gives virtual addresses by name.
	Variables map[string]uint64 `json:"variables"`
}

// recall looks a variable up in memory and on disk. What it cannot read, or
// what is of another file by now, is not there. The caller holds the mutex.
func (p *Prober) recall(id identity, name string) (uint64, bool) {
	if p.known == nil {
		p.known = make(map[identity]map[string]uint64)
	}
	if p.known[id] == nil {
		p.known[id] = p.load(id)
	}
	at, ok := p.known[id][name]
	return at, ok
}

func (p *Prober) load(id identity) map[string]uint64 {
	var found kept
	if name, ok := p.file(id); ok {
		content := filecache.Dir(p.Dir).Get(name)
		if json.Unmarshal(content, &found) == nil && found.Identity == id && found.Variables != nil {
			return found.Variables
		}
	}
	return make(map[string]uint64)
}

// remember keeps an answer; that the disk cannot take it costs another
// probing, and nothing more. The caller holds the mutex.
func (p *Prober) remember(id identity, variable string, at uint64) {
	p.known[id][variable] = at
	name, ok := p.file(id)
	if !ok {
		return
	}
	content, err := json.Marshal(kept{Identity: id, Variables: p.known[id]})
	if err != nil {
		return
	}
	_ = filecache.Dir(p.Dir).Put(name, append(content, '\n'), maxFiles)
}

// file names the file for an object; false where there is none.
func (p *Prober) file(id identity) (string, bool) {
	return fmt.Sprintf("%s.%d.json", id.BuildID, id.UID), p.Dir != "" && id.BuildID != ""
}
