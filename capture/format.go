package capture

import (
	"bytes"
	"fmt"
	"strings"
)

// FormatError means that an input is not a capture of a known format.
type FormatError struct {
	File   string // as given by the user
	Found  []byte // the first bytes
	Inside string // "gzip" or "zstd" if the bytes came out of a decompressor
	tar    bool
	Other  string // what else the program would take, for example "a plan"; usually nothing
}

func (e *FormatError) Error() string {
	var b strings.Builder
	what := "not a packet capture"
	if e.Other != "" {
		what = "neither " + e.Other + " nor a packet capture"
	}
	fmt.Fprintf(&b, "%s: %s: ", e.File, what)
	if e.Inside != "" {
		fmt.Fprintf(&b, "decompressed with %s, ", e.Inside)
	}
	if len(e.Found) < 4 {
		unit := "bytes"
		if len(e.Found) == 1 {
			unit = "byte"
		}
		fmt.Fprintf(&b, "only %d %s long (% x)", len(e.Found), unit, e.Found)
	} else {
		fmt.Fprintf(&b, "starts with % x", e.Found[:min(8, len(e.Found))])
		if s := e.foreign(); s != "" {
			fmt.Fprintf(&b, " (%s)", s)
		}
	}
	b.WriteString("; supported are pcap, pcapng, ERF and the text of trace events, also compressed with gzip or zstd")
	return b.String()
}

// foreign names formats that users are likely to try.
func (e *FormatError) foreign() string {
	head := e.Found
	if e.tar {
		return "tar archive: unpack it first"
	}
	for _, f := range [...]struct{ magic, name string }{
		{"\xfd7zXZ\x00", "xz: decompress it first"},
		{"BZh", "bzip2: decompress it first"},
		{"\x04\x22\x4d\x18", "lz4: decompress it first"},
		{"\x1f\x8b", "gzip within compressed data"},
		{"\x28\xb5\x2f\xfd", "zstd within compressed data"},
		{"PK\x03\x04", "zip archive: unpack it first"},
		{"snoop\x00", "snoop: convert it with editcap"},
		{"RTSS", "Network Monitor: convert it with editcap"},
		{"GMBU", "Network Monitor: convert it with editcap"},
		{"\x7fELF", "a program"},
	} {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return f.name
		}
	}
	for _, c := range head {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' || c > '~' {
			return ""
		}
	}
	return "text"
}
