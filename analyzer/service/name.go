// SPDX-License-Identifier: Apache-2.0

package service

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"path"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// SiteID begins the ids of the site's own registrations.
	SiteID = "site-"
	// maxName bounds what is taken of a name into an id.
	maxName = 40
	// tagSize is the length of what makes ids unique.
	tagSize = 4
)

// key is what a session is known by. Users are told apart, since anybody can give
// their processes the job id of somebody else, and keep them away from the site's
// registrations by being first.
type key struct {
	registration, job string
	uid               uint32 // pki.NoUID: nobody has said
}

func newKey(registration string, job *attunev1.Job, user *attunev1.Principal) key {
	uid := pki.NoUID
	if user != nil {
		uid = user.GetUid()
	}
	return key{registration, job.Key(), uid}
}

// ofConfiguration says whether a registration comes from an Analyzer's configuration.
func ofConfiguration(r *attunev1.Registration) bool {
	return strings.HasPrefix(r.GetId(), SiteID) && r.GetOwner().GetRole() == attunev1.Role_ROLE_ANALYZER
}

// newRegistrationID returns an id for people to type: the application's name and
// what makes it unique. It is none of the site's own, and no flag.
func newRegistrationID(r *attunev1.Registration) string {
	if r.GetExecutable() == "" {
		return "all-" + randomTag()
	}
	name, _ := plain(strings.ToLower(path.Base(r.GetExecutable())))
	id := strings.Trim(name, "-.") + "-" + randomTag()
	if strings.HasPrefix(id, "-") || strings.HasPrefix(id, SiteID) {
		id = "app-" + strings.TrimPrefix(id, "-")
	}
	return id
}

// sessionID returns an id for an execution, the same whenever it is asked for;
// number counts sessions of one execution, from 1 on. The site's registrations
// may have several users.
func sessionID(r *attunev1.Registration, job *attunev1.Job, user *attunev1.Principal, number int) string {
	name := job.GetKind() + "-" + job.GetId()
	if job.GetStep() != "" {
		name += "." + job.GetStep()
	}
	clean, altered := plain(name)
	if altered {
		clean += "-" + tagOf(job.Key())
	}
	id := r.GetId() + "." + clean
	if ofSite(r) && user != nil {
		id += ".u" + strconv.FormatUint(uint64(user.GetUid()), 10)
	}
	if number > 1 {
		id += "." + strconv.Itoa(number)
	}
	return id
}

// plain returns a name in letters that every part of Attune takes, and whether
// that altered it.
func plain(name string) (clean string, altered bool) {
	clean = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, name)
	if len(clean) > maxName {
		clean = clean[:maxName]
	}
	for strings.Contains(clean, "..") {
		clean = strings.ReplaceAll(clean, "..", ".")
	}
	clean = strings.Trim(clean, ".")
	return clean, clean != name
}

// alphabet has no letters that are taken for digits.
var alphabet = base32.NewEncoding("abcdefghijkmnpqrstuvwxyz23456789").WithPadding(base32.NoPadding)

// randomTag returns some random letters.
func randomTag() string {
	var b [tagSize]byte
	_, _ = rand.Read(b[:]) // never fails
	return alphabet.EncodeToString(b[:])[:tagSize]
}

// tagOf returns some letters that depend on text.
func tagOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return alphabet.EncodeToString(sum[:])[:tagSize]
}
