package tshark

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// kind is how the values of a field are compared.
type kind uint8

const (
	number  kind = iota // decimal
	octets              // hexadecimal digits
	text                // as tshark escapes it
	seconds             // decimal with nine places
	digest              // hexadecimal digits, or a hash of many of them
)

// canonical brings a value that tshark printed into the form that both sides
// are compared in. Versions of tshark differ in the base of numbers, the
// colons between bytes, and the names of booleans.
func (k kind) canonical(v string) string {
	switch k {
	case number:
		switch v {
		case "True", "Yes":
			return "1"
		case "False", "No":
			return "0"
		}
		if n, err := strconv.ParseUint(v, 0, 64); err == nil {
			return strconv.FormatUint(n, 10)
		}
	case digest:
		if v = octets.canonical(v); len(v) > 64 {
			h := sha256.Sum256([]byte(v))
			return num(len(v)/2) + " bytes " + bin(h[:8])
		}
	case octets:
		if v == "<missing>" || v == "<MISSING>" {
			return "" // an opaque of length 0
		}
		return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(v, "0x"), ":", ""))
	}
	return v
}

func num[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int](v T) string {
	return strconv.FormatUint(uint64(v), 10)
}

func boolean(v bool) string {
	if v {
		return "1"
	}
	return "0"
}

func bin(b []byte) string { return hex.EncodeToString(b) }

// str escapes as tshark does.
func str(b []byte) string {
	var s strings.Builder
	for _, c := range []byte(string(b)) {
		switch c {
		case '\n':
			s.WriteString(`\n`)
		case '\t':
			s.WriteString(`\t`)
		case '\r':
			s.WriteString(`\r`)
		case '\\':
			s.WriteString(`\\`)
		default:
			s.WriteByte(c)
		}
	}
	return s.String()
}

// nanoseconds prints a time span as tshark does.
func nanoseconds(ns int64) string {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	frac := strconv.FormatInt(1e9+ns%1e9, 10)[1:]
	return sign + strconv.FormatInt(ns/1e9, 10) + "." + frac
}
