package extract

import (
	"crypto/md5"
	"encoding/hex"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/internal/printable"
)

// Limits of names, in bytes: what usual file systems take of one, and what is
// left of PATH_MAX for a path below a directory.
const (
	maxComponent = 255
	maxPath      = 2048
	maxDepth     = 64
)

// clean makes a path that cannot leave the directory, nor mislead a reader, from names that a peer has
// chosen; empty if there is none. Characters that do not belong in a name are written as %XX:
//
//   - bytes that are not UTF-8, and characters that are not shown as they are
//     (package printable);
//   - characters with a meaning to shells or other systems: / \ and, before two
//     hexadecimal digits, %;
//   - "." and "..", and a leading "-", which programs take for an option;
//   - names that some systems keep for devices: CON, NUL and the like.
//
// A component that is too long ends with its hash. Different paths stay different as far as the length
// allows.
func clean(path string) string {
	if path == "" {
		return ""
	}
	parts := strings.Split(path, "/")
	if len(parts) > maxDepth {
		return ""
	}
	for i, p := range parts {
		parts[i] = component(p)
	}
	if out := filepath.Join(parts...); len(out) <= maxPath {
		return out
	}
	return ""
}

func component(p string) string {
	switch {
	case p == "":
		return "_"
	case p == ".", p == "..":
		return strings.ReplaceAll(p, ".", "%2E")
	}
	b := make([]byte, 0, len(p)+8)
	if p[0] == '-' || device(p) {
		b = percent(b, p[:1])
		p = p[1:]
	}
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRuneInString(p[i:])
		switch {
		case !printable.Rune(r), r == utf8.RuneError && n == 1, r == '\\', r == '%' && i+2 < len(p) && isHex(p[i+1]) && isHex(p[i+2]):
			b = percent(b, p[i:i+n])
		default:
			b = append(b, p[i:i+n]...)
		}
		i += n
	}
	if len(b) <= maxComponent {
		return string(b)
	}
	sum := md5.Sum(b)
	cut := 200
	for !utf8.RuneStart(b[cut]) {
		cut--
	}
	return string(b[:cut]) + hex.EncodeToString(sum[:])
}

func percent(b []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		b = append(b, '%', digits[s[i]>>4], digits[s[i]&15])
	}
	return b
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// device reports whether Windows takes a name for a device, wherever it stands.
func device(p string) bool {
	name, _, _ := strings.Cut(strings.ToUpper(p), ".")
	switch name = strings.TrimRight(name, " "); name {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	if len(name) != 4 || name[3] < '0' || name[3] > '9' {
		return false
	}
	return name[:3] == "COM" || name[:3] == "LPT"
}
