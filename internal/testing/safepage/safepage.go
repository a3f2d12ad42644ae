// SPDX-License-Identifier: Apache-2.0

// Package safepage checks that a page for a browser is whole, fetches nothing and runs
// nothing. It has no state.
package safepage

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"
)

// least is how many elements a page has that is whole.
const least = 50

// bad is what no number and no address of a page is.
var bad = regexp.MustCompile(`NaN|Inf|%!|ZgotmplZ`)

// Check fails the test for each element of a page that could fetch or run something, for a
// policy that allows it, for what is no number, and for what a terminal would obey.
func Check(t *testing.T, page []byte) {
	t.Helper()
	if !bytes.Contains(page, []byte("default-src &#39;none&#39;")) {
		t.Error("the page's policy allows to fetch")
	}
	if found := bad.Find(page); found != nil {
		t.Errorf("the page has %s", found)
	}
	if at := bytes.IndexFunc(page, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) && r != '\n' && r != '\t' }); at >= 0 {
		t.Errorf("the page has a control character behind %q", page[max(0, at-20):at])
	}
	for _, tag := range elements(t, page) {
		switch tag.Data {
		case "script", "link", "img", "iframe", "object", "embed", "form", "input", "a":
			t.Errorf("the page has <%s>", tag.Data)
		}
		for _, a := range tag.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" || a.Key == "href" {
				t.Errorf("<%s %s=%q>", tag.Data, a.Key, a.Val)
			}
		}
	}
}

// elements are the start tags.
func elements(t *testing.T, page []byte) (all []html.Token) {
	t.Helper()
	for z := html.NewTokenizer(bytes.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if len(all) < least {
				t.Fatalf("%d elements: %v", len(all), z.Err())
			}
			return all
		case html.StartTagToken, html.SelfClosingTagToken:
			all = append(all, z.Token())
		}
	}
}
