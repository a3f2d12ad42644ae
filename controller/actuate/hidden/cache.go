// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

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
	if path, ok := p.path(id); ok {
		content, err := os.ReadFile(path)
		if err == nil && json.Unmarshal(content, &found) == nil && found.Identity == id && found.Variables != nil {
			return found.Variables
		}
	}
	return make(map[string]uint64)
}

// remember keeps an answer; that the disk cannot take it costs another
// probing, and nothing more. The caller holds the mutex.
func (p *Prober) remember(id identity, name string, at uint64) {
	p.known[id][name] = at
	path, ok := p.path(id)
	if !ok {
		return
	}
	content, err := json.Marshal(kept{Identity: id, Variables: p.known[id]})
	if err != nil {
		return
	}
	_ = replace(path, append(content, '\n'))
}

// path of the file for an object; false where there is none.
func (p *Prober) path(id identity) (string, bool) {
	if p.Dir == "" || id.BuildID == "" {
		return "", false
	}
	return filepath.Join(p.Dir, fmt.Sprintf("%s.%d.json", id.BuildID, id.UID)), true
}

// replace writes a file that is complete under its name or not there at all.
func replace(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
