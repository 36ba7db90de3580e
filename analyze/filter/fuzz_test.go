package filter

import (
	"errors"
	"testing"
	"unicode/utf8"
)

func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		"", "op == READ && latency > 1ms", "not (xid in {1, 5..9} or uid)", "client == 10.0.0.0/8 and host ::1", "nfs.READ.offset >= 64KiB",
		"file.name matches \"^\\\\d+\\x41\"", "file.filehandle == 01:02:ff", "time > 2024-05-01T12:00:00.5Z", "nfs.OPEN.claim.file contains 'a b'",
		"status == NOENT || status != 2", "!!!error", "handle !== 0x1234", "nfs.mode & RUSR", "nfs.args.WRITE.data.length === 4k", "((((xid))))",
		"op == RAED", "xid in {", "'", "a | b", "nfs.....", "latency in {1us .. 2us 5ms}", "mount.dirpath ~ (", "\xff == \xfe",
	} {
		f.Add(s)
	}
	views := []call{read3(), open4(), {program: 4711, version: 1, procedure: 9}}
	f.Fuzz(func(t *testing.T, expr string) {
		c, err := Compile(expr)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T", err)
			}
			if e.Pos < 0 || e.Pos > len(e.Expr) {
				t.Fatalf("position %d of %d bytes", e.Pos, len(e.Expr))
			}
			if e.Error() == "" || e.Expected == "" || utf8.ValidString(expr) && !utf8.ValidString(e.Caret()) {
				t.Fatalf("%#v", e)
			}
			return
		}
		for _, v := range views {
			c.Match(v.view())
		}
	})
}

func FuzzField(f *testing.F) {
	for _, s := range []string{"xid", "nfs.READ.offset", "nfs.args.data.length", "nfs", "rpc.flavor", "NFS_CB.cb_recall", "a.b.c", "mount."} {
		f.Add(s)
	}
	views := []call{read3(), open4()}
	f.Fuzz(func(t *testing.T, name string) {
		r, err := Field(name)
		if err != nil {
			return
		}
		for _, v := range views {
			r.Append(nil, v.view())
		}
		// What is a field can be used in an expression.
		if _, err := Compile(name); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	})
}
