// SPDX-License-Identifier: Apache-2.0

package pointtext

import (
	"fmt"
	"strings"
)

// kind of a token.
type kind int

const (
	end    kind = iota
	word        // a name, a keyword, a number
	symbol      // punctuation
)

// token is a piece of the text; at is where it begins.
type token struct {
	kind kind
	text string
	at   int
}

// symbols by length: the longest that fits is meant.
var symbols = [...]string{"->", "==", "!=", "<=", ">=", "<", ">", "=", "&", ":", ",", ".", "*", "@", "-", "+", "(", ")", "[", "]"}

// tokens splits clauses, which begin at an offset of the whole text.
func tokens(text string, offset int) ([]token, error) {
	var list []token
	for at := 0; at < len(text); {
		rest := text[at:]
		switch {
		case isSpace(rest[0]):
			at++
		case isWord(rest[0]):
			n := 1
			for n < len(rest) && (isWord(rest[n]) || isFraction(rest, n)) {
				n++
			}
			list = append(list, token{word, rest[:n], offset + at})
			at += n
		default:
			s := symbolAt(rest)
			if s == "" {
				return nil, fmt.Errorf("%q is not understood", firstRune(rest))
			}
			list = append(list, token{symbol, s, offset + at})
			at += len(s)
		}
	}
	return append(list, token{end, "", offset + len(text)}), nil
}

func symbolAt(text string) string {
	for _, s := range symbols {
		if strings.HasPrefix(text, s) {
			return s
		}
	}
	return ""
}

func firstRune(text string) string {
	for _, r := range text {
		return string(r)
	}
	return ""
}

// isFraction says whether the point at n belongs to a number such as 1.5.
func isFraction(text string, n int) bool {
	return text[n] == '.' && isDigit(text[0]) && n+1 < len(text) && isDigit(text[n+1]) && !strings.Contains(text[:n], ".")
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isWord accepts what names in source code and in symbol tables consist of;
// other bytes of UTF-8 too.
func isWord(c byte) bool {
	return c == '_' || c == '$' || isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
