// SPDX-License-Identifier: Apache-2.0

// Command install installs by hand what the packages hold, or removes it again, as
// their lists for nfpm say (packaging/nfpm), with their maintainer scripts.
//
//	install [-prefix DIR] [-destdir DIR] LIST...
//	install -uninstall [-purge] [-prefix DIR] [-destdir DIR] LIST...
//
// It runs in the root of the repository, after `make stage`. `make install` and
// `make uninstall` call it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// options say where to, and whether things are removed.
type options struct {
	prefix, destdir  string
	uninstall, purge bool
}

func main() {
	var o options
	flag.StringVar(&o.prefix, "prefix", "/usr/local", "in place of /usr; absolute")
	flag.StringVar(&o.destdir, "destdir", "", "directory that is the root of all, and in which no script runs")
	flag.BoolVar(&o.uninstall, "uninstall", false, "remove")
	flag.BoolVar(&o.purge, "purge", false, "remove configuration and state as well")
	flag.Parse()
	if flag.NArg() == 0 || !filepath.IsAbs(o.prefix) || o.purge && !o.uninstall {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(o, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "install: %v\n", err)
		os.Exit(1)
	}
}

func run(o options, lists []string) error {
	defer unix.Umask(unix.Umask(0o022)) // what is installed is for all
	var packages []*pack
	for _, list := range lists {
		p, err := read(list)
		if err != nil {
			return err
		}
		packages = append(packages, p)
	}
	act := o.install
	if o.uninstall {
		act = o.remove
		slices.Reverse(packages) // what needs others goes before them
	}
	for _, p := range packages {
		if err := act(p); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}

func (o options) install(p *pack) error {
	files, err := p.files(o.prefix)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := f.install(o.destdir); err != nil {
			return err
		}
	}
	return o.script(p.Scripts.PostInstall, "configure")
}

func (o options) remove(p *pack) error {
	files, err := p.files(o.prefix)
	if err != nil {
		return err
	}
	if err := o.script(p.Scripts.PreRemove, "remove"); err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		errs = append(errs, f.remove(o.destdir, o.purge))
	}
	errs = append(errs, o.script(p.Scripts.PostRemove, "remove"))
	if o.purge {
		errs = append(errs, o.script(p.Scripts.PostRemove, "purge"))
	}
	return errors.Join(errs...)
}

// script runs a maintainer script as dpkg does; there need not be one. It concerns
// this machine: it does not run for another root, and for a user, who has no services.
func (o options) script(path, action string) error {
	if path == "" || o.destdir != "" || os.Geteuid() != 0 {
		return nil
	}
	cmd := exec.Command("/bin/sh", path, action)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", path, action, err)
	}
	return nil
}
