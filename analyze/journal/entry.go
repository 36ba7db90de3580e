package journal

import (
	"bytes"
	"encoding/binary"
)

// maxName is the longest name of a field that the journal takes.
const maxName = 64

// AppendField appends a field of an entry. A value without a line feed becomes "NAME=value\n"; any other is
// the name alone on a line, its length as 64 bits in little endian, the bytes, and a line feed
// (systemd.io/JOURNAL_NATIVE_PROTOCOL).
func AppendField(b []byte, name string, value []byte) []byte {
	b = append(b, name...)
	if bytes.IndexByte(value, '\n') < 0 {
		b = append(b, '=')
	} else {
		b = append(b, '\n')
		b = binary.LittleEndian.AppendUint64(b, uint64(len(value)))
	}
	b = append(b, value...)
	return append(b, '\n')
}

// validName reports whether the journal takes a field of this name; it drops others without a word.
func validName(name string) bool {
	if len(name) == 0 || len(name) > maxName || name[0] < 'A' || name[0] > 'Z' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}
