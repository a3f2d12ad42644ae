// SPDX-License-Identifier: Apache-2.0

package symname

import (
	"regexp"
	"strings"
	"unicode"
)

// translate turns a pattern into a regular expression, which Go matches in
// linear time. A bracket that is not closed stands for itself.
func translate(pattern string) string {
	var out strings.Builder
	out.WriteString(`(?s)\A`)
	for len(pattern) > 0 {
		size := 1
		switch c := pattern[0]; {
		case c == '*':
			out.WriteString(".*")
		case c == '?':
			out.WriteString(".")
		case c == '\\' && len(pattern) > 1:
			out.WriteString(regexp.QuoteMeta(pattern[1:2]))
			size = 2
		case c == '[' && strings.IndexByte(pattern, ']') > 1:
			size = strings.IndexByte(pattern, ']') + 1
			out.WriteString(set(pattern[1 : size-1]))
		default:
			out.WriteString(regexp.QuoteMeta(pattern[:1]))
		}
		pattern = pattern[size:]
	}
	return out.String() + `\z`
}

// set translates the inside of [...]: characters and ranges, after ^ or !
// everything else.
func set(inside string) string {
	negated := ""
	if inside[0] == '^' || inside[0] == '!' {
		negated, inside = "^", inside[1:]
	}
	inside = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`).Replace(inside)
	return "[" + negated + inside + "]"
}

// literals splits off what every name contains that a pattern matches. What
// follows a bracket or backslash is not looked at.
func literals(pattern string) []string {
	if special := strings.IndexAny(pattern, `[\`); special >= 0 {
		pattern = pattern[:special]
	}
	return strings.FieldsFunc(pattern, func(r rune) bool { return r == '*' || r == '?' })
}

// abbreviated holds the words that a demangled name can have without the
// mangled one having them: built-in types, what the Itanium ABI abbreviates,
// and what a demangler adds.
const abbreviated = " std string basic_string allocator basic_istream basic_ostream basic_iostream istream ostream iostream " +
	"char_traits operator new delete void bool char char8_t char16_t char32_t wchar_t unsigned signed short int long float double " +
	"__int128 __float128 half decimal32 decimal64 decimal128 const volatile restrict noexcept decltype auto nullptr_t nullptr " +
	"true false sizeof alignof typeid throw static_cast dynamic_cast reinterpret_cast const_cast virtual covariant return non-virtual " +
	"thunk to for vtable typeinfo name guard variable reference temporary construction transaction clone anonymous namespace lambda unnamed type " +
	"complex imaginary block_pointer initializer module entry template parameter object init function TLS wrapper safe " +
	"closure shim impl as dyn fn extern unsafe mut usize isize i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 str default requires "

// words splits off the identifiers that the mangled name of everything must
// contain whose demangled name fits. Parameters are left out, and so is
// whatever may stand for something that is written differently.
func words(pattern string) []string {
	if special := strings.IndexAny(pattern, `[\({`); special >= 0 {
		pattern = pattern[:special]
	}
	all := strings.FieldsFunc(pattern, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	kept := all[:0]
	for _, word := range all {
		if ascii(word) && !unicode.IsDigit(rune(word[0])) && !strings.Contains(abbreviated, word) {
			kept = append(kept, word)
		}
	}
	return kept
}

// ascii: other letters may be mangled as punycode.
func ascii(word string) bool {
	return strings.IndexFunc(word, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// Escape returns the pattern that matches a text and nothing else.
func Escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}
