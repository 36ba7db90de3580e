package text

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// message shows itself to a Visitor.
type message func(xdr.Visitor)

func TestLayout(t *testing.T) {
	entries := func(v xdr.Visitor) {
		for i := range 5 {
			v.Begin("entries", "entry", i)
			v.Uint("fileid", uint64(i))
			v.End()
		}
		v.Bool("eof", true)
	}
	for _, c := range []struct {
		name string
		full bool
		show message
		want string
	}{
		{"leaves", false, func(v xdr.Visitor) {
			v.Uint("offset", 4096)
			v.Int("delta", -1)
			v.Enum("stable", 2, "FILE_SYNC")
			v.Enum("how", 9, "")
			v.Flags("access", 3, "READ|LOOKUP")
			v.Flags("mode", 0o644, "")
			v.Bytes("fh", nil)
			v.String("name", []byte("a\x1bb"))
			v.Time("mtime", 1, 5)
		}, `  offset 4096, delta -1, stable FILE_SYNC, how 9, access READ|LOOKUP, mode 0644, fh (empty), name "a\x1bb",
  mtime 1970-01-01T00:00:01.000000005Z
`},
		{"structure", false, func(v xdr.Visitor) {
			v.Begin("what", "diropargs3", -1)
			v.Begin("dir", "nfs_fh3", -1)
			v.Bytes("data", []byte{1, 2})
			v.End()
			v.String("name", []byte("x"))
			v.End()
		}, "  what:\n    dir: data 0102\n    name \"x\"\n"},
		{"chain", false, func(v xdr.Visitor) {
			v.Begin("resok", "t", -1)
			v.Begin("attributes", "u", -1)
			v.Uint("size", 1)
			v.End()
			v.End()
		}, "  resok.attributes: size 1\n"},
		{"list", false, entries, "  entries[0]: fileid 0\n  entries[1]: fileid 1\n  entries[2]: fileid 2\n  … 2 more (-vv shows all)\n  eof true\n"},
		{"whole list", true, entries, "  entries[0]:\n    fileid: 0\n  entries[1]:\n    fileid: 1\n  entries[2]:\n    fileid: 2\n  entries[3]:\n    fileid: 3\n  entries[4]:\n    fileid: 4\n  eof: true\n"},
		{"same name", false, func(v xdr.Visitor) {
			v.Uint("gids", 1)
			v.Uint("gids", 2)
			v.Uint("gids", 3)
		}, "  gids 1, 2, 3\n"},
		{"data", false, func(v xdr.Visitor) {
			v.Data("chunk", xdr.Data{Length: 4096, Chunk: 1})
			v.Data("text", xdr.Data{Length: 6, Inline: []byte("hello\n")})
			v.Data("binary", xdr.Data{Length: 4000, Inline: bytes.Repeat([]byte{0xfe}, 4000)})
		}, "  chunk 4096 bytes in chunk 0, text 6 bytes \"hello\\n\",\n  binary 4000 bytes " + strings.Repeat("fe", 32) + "…\n"},
		{"unfinished", false, func(v xdr.Visitor) {
			v.Begin("a", "t", -1)
			v.Begin("b", "t", -1)
			v.Uint("c", 1)
		}, "  a.b: c 1\n"},
		{"empty", false, func(v xdr.Visitor) {
			v.Begin("a", "t", -1)
			v.End()
			v.End() // one too many
		}, "  a: (empty)\n"},
	} {
		var f fields
		tree := Tree{Width: 110}
		f.reset(c.full)
		c.show(&f)
		if got := string(tree.layout(nil, &f, 2)); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}
