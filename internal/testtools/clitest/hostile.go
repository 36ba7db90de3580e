package clitest

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/capture"
)

// hostile are the parts of names: control sequences for a terminal, changes of the writing direction, line
// ends, what is not UTF-8, what ends a string in HTML, JSON and DOT.
var hostile = []string{
	"\x1b[2J", "\u202e", "\u2066", "\u0085", "\u2028", "\xff\xfe", "\x7f", "\u061c", "\u200f", "\n\r", "\u009b1m", "\u2029", "\xc3\x28", "\u2069",
	`"><b>`, "\u202a", "\u200e", "\t\x07", "\U000e0041", "\xed\xa0\x80", `\"`, "-rf", "..", "\u2067\u2068",
}

// HostileName is a name for a file of the user's.
const HostileName = "a\x1b[31m\u202e\u0085\n\xff.pcapng"

// Hostile writes a capture that is another one with all text in its RPC messages
// made hostile, of the same length: names, targets of links, owners, hosts, tags.
// Names that were different stay different. The interfaces have hostile names,
// too. It returns the name of the file, which is hostile itself.
func Hostile(t *testing.T, dir string, samples ...string) string {
	t.Helper()
	r, err := capture.Open(samples, capture.Options{})
	must(t, err)
	defer r.Close()
	name := filepath.Join(dir, HostileName)
	f, err := os.Create(name)
	must(t, err)
	defer f.Close()
	w := capture.NewWriter(f, capture.WriterOptions{Taps: func() []capture.Tap {
		return []capture.Tap{{Name: "eth\u202e\x1b]0;", Description: "a\nb\u2066"}, {Name: "\u0085"}}
	}})
	seen := map[string]string{}
	changed := 0
	var b capture.Batch
	for r.Read(&b) == nil {
		for i := range b.Packets {
			p := b.Packets[i]
			p.Data = bytes.Clone(p.Data)
			changed += spoil(p.Data, seen)
			must(t, w.Write(&p))
		}
	}
	must(t, w.Flush())
	if changed < 20 {
		t.Fatalf("only %d texts found", changed)
	}
	return name
}

// spoil changes the strings of XDR in a packet: a length of four bytes, and so
// many letters, digits and the like.
func spoil(b []byte, seen map[string]string) (n int) {
	for i := 42; i+8 < len(b); i++ {
		l := int(binary.BigEndian.Uint32(b[i:]))
		if l < 4 || l > 64 || i+4+l > len(b) {
			continue
		}
		s := b[i+4 : i+4+l]
		if !plainName(s) {
			continue
		}
		bad, ok := seen[string(s)]
		if !ok {
			bad = spoilt(string(s), len(seen))
			seen[string(s)] = bad
		}
		copy(s, bad)
		i += 3 + l
		n++
	}
	return n
}

func plainName(s []byte) bool {
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-@/: ", c) >= 0) {
			return false
		}
	}
	return true
}

// spoilt is a hostile text of the same length. The end of the old one keeps it
// apart from others.
func spoilt(s string, n int) string {
	b := []byte(s)
	for at := 0; at < len(b)-2; {
		h := hostile[n%len(hostile)]
		n += 7
		if at+len(h) > len(b)-2 {
			b[at] = 0x1b // fits always
			at++
			continue
		}
		at += copy(b[at:], h)
	}
	return string(b)
}

// Raw returns the first place of an output with a character that must be escaped, with its surroundings;
// empty if there is none. It has its own list, not that of package printable.
func Raw(s string) string {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		bad := r == utf8.RuneError && n == 1 || r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f ||
			r == 0x61c || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r == 0xfeff ||
			r >= 0xe0000 && r <= 0xe0fff
		if bad {
			return strings.ToValidUTF8(s[max(0, i-60):min(len(s), i+40)], "?")
		}
		i += n
	}
	return ""
}

// Shown reports whether an output has something of the hostile text at all, in
// one of the forms in which it may be there.
func Shown(s string) bool {
	for _, form := range []string{`\x1b`, `\u001b`, `\xe2\x80`, `\u202`, `\u206`, `\ufffd`, `\xff`, `\\x1b`, `%1B`, `%E2%80`} {
		if strings.Contains(s, form) {
			return true
		}
	}
	return false
}
