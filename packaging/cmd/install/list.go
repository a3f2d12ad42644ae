// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// pack is what is read of a package's list for nfpm.
type pack struct {
	Name     string    `yaml:"name"`
	Contents []content `yaml:"contents"`
	Scripts  struct {
		PostInstall string `yaml:"postinstall"`
		PreRemove   string `yaml:"preremove"`
		PostRemove  string `yaml:"postremove"`
	} `yaml:"scripts"`
}

// content is a file, several by a pattern, or a tree of them.
type content struct {
	Source      string `yaml:"src"`
	Destination string `yaml:"dst"` // of several: a directory, with a slash
	Type        string `yaml:"type"`
	Expand      bool   `yaml:"expand"` // variables of the environment in Destination
}

// Types of contents, beside files. Directories come and go with their files.
const (
	tree      = "tree"
	directory = "dir"
	config    = "config|noreplace"
)

func read(list string) (*pack, error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	p := new(pack)
	if err := yaml.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	return p, nil
}

// files are all that the package holds, for a prefix.
func (p *pack) files(prefix string) ([]file, error) {
	var all []file
	for _, c := range p.Contents {
		if c.Type == directory {
			continue
		}
		files, err := c.files(prefix)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("there is no %s: make stage", c.Source)
		}
		all = append(all, files...)
	}
	return all, nil
}

func (c content) files(prefix string) ([]file, error) {
	f := file{source: c.Source, destination: place(c.Destination, prefix), prefix: prefix, config: c.Type == config}
	if c.Expand {
		f.destination = os.ExpandEnv(f.destination)
	}
	switch {
	case c.Type == tree:
		return f.tree()
	case c.Type != "" && c.Type != config:
		return nil, fmt.Errorf("%s: install does not know contents of type %q", c.Destination, c.Type)
	case !strings.HasSuffix(c.Destination, "/"):
		return []file{f}, nil
	}
	sources, err := filepath.Glob(c.Source)
	var files []file
	for _, source := range sources {
		one := f
		one.source, one.destination = source, filepath.Join(f.destination, filepath.Base(source))
		files = append(files, one)
	}
	return files, err
}

// tree lists the files below the source.
func (f file) tree() (files []file, err error) {
	err = filepath.WalkDir(f.source, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		one := f
		one.source, one.destination = path, f.destination+strings.TrimPrefix(path, f.source)
		files = append(files, one)
		return nil
	})
	return files, err
}

// place is where something goes that the package has at a path: the prefix is for
// /usr, whatever else there is has one place only. What systemd reads it looks for in
// /usr, /usr/local and /etc.
func place(path, prefix string) string {
	below, found := strings.CutPrefix(path, "/usr/")
	if !found {
		return path
	}
	if prefix != "/usr" && prefix != "/usr/local" {
		for _, dir := range []string{"systemd/system/", "sysusers.d/", "tmpfiles.d/"} {
			if name, found := strings.CutPrefix(below, "lib/"+dir); found {
				return "/etc/" + dir + name
			}
		}
	}
	return filepath.Join(prefix, below)
}
