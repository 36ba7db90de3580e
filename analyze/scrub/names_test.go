package scrub

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

func replaced(n *names, c xdr.Class, s string) string {
	dst := make([]byte, len(s))
	n.replace(c, dst, []byte(s))
	return string(dst)
}

func TestNames(t *testing.T) {
	n, same, other := newNames(&Options{Key: []byte("a key")}), newNames(&Options{Key: []byte("a key")}), newNames(&Options{Key: []byte("another")})
	for _, x := range []struct {
		class  xdr.Class
		text   string
		points string // characters that stay
	}{
		{xdr.Name, "report-2024.pdf", ""},
		{xdr.Name, "a", ""},
		{xdr.Name, "mit Leerzeichen und Ümlaut", ""},
		{xdr.Name, strings.Repeat("x", 300), ""},
		{xdr.Path, "/export/home//anna", "/"},
		{xdr.Path, "../up", "/."},
		{xdr.Host, "client.example.com", "."},
		{xdr.Who, "anna@example.com", "@."},
		{xdr.Who, "staff", ""},
		{xdr.Owner, "Linux NFSv4.1 client.example.com", " ."},
		{xdr.Owner, "open id:\x00\x00\x001234567", ""},
		{xdr.Handle, "\x01\x00\x06\x81aaaaaaaaaaaa\x00\x00", ""},
	} {
		got := replaced(n, x.class, x.text)
		if again := replaced(same, x.class, x.text); again != got || replaced(n, x.class, x.text) != got {
			t.Errorf("%q: %q, then %q", x.text, got, again)
		}
		if len(x.text) > 4 && (replaced(other, x.class, x.text) == got || got == x.text) {
			t.Errorf("%q: %q with another key", x.text, got)
		}
		if x.points != "" {
			for i := range x.text {
				if strings.IndexByte(x.points, x.text[i]) >= 0 && got[i] != x.text[i] && x.class != xdr.Path {
					t.Errorf("%q: %q", x.text, got)
				}
			}
		}
		if x.class != xdr.Handle && x.text != "open id:\x00\x00\x001234567" {
			for _, c := range []byte(got) {
				if c < ' ' || c > '~' {
					t.Errorf("%q becomes %q", x.text, got)
				}
			}
		}
	}
	for c, same := range map[xdr.Class][]string{
		xdr.Name: {".", "..", ""}, xdr.Who: {"EVERYONE@", "1000"}, xdr.Known: {"tcp", "rdma6"}, xdr.Path: {"/", "../.."},
	} {
		for _, s := range same {
			if got := replaced(n, c, s); got != s {
				t.Errorf("%q becomes %q", s, got)
			}
		}
	}
	for s, want := range map[string]string{
		"10.12.0.1.8.1": "00.00.0.0.8.1", "fe80::1%eth0.0.111": "0000::000000.0.111", "/var/run/x": "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		if got := replaced(n, xdr.Address, s); got != want {
			t.Errorf("%q becomes %q, want %q", s, got, want)
		}
	}
	if got := replaced(n, xdr.Known, "anything"); got != "\x00\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("%q", got)
	}
}

// TestUsers: numbers are the same as numbers and as texts, with as many digits.
func TestUsers(t *testing.T) {
	n := newNames(&Options{Key: []byte("a key"), Users: true})
	seen := map[string]bool{}
	for _, v := range []uint32{1, 7, 10, 99, 1000, 1001, 65533, 65535, 4294967293, 123456789} {
		text := fmt.Sprint(v)
		b := make([]byte, 4)
		n.replace(xdr.User, b, binary.BigEndian.AppendUint32(nil, v))
		got := replaced(n, xdr.Who, text)
		if number := fmt.Sprint(binary.BigEndian.Uint32(b)); got != number || len(got) != len(text) || seen[got] || v > 999 && got == text {
			t.Errorf("%s becomes %s as text, %s as a number", text, got, number)
		}
		seen[got] = true
	}
	for _, same := range []string{"0", "65534", "4294967295", "4294967294"} {
		if got := replaced(n, xdr.Who, same); got != same {
			t.Errorf("%s becomes %s", same, got)
		}
	}
	if got := replaced(n, xdr.Who, "0123"); got == "0123" {
		t.Error("what is not a number stays")
	}
}

// TestExtensions: short ones stay on request.
func TestExtensions(t *testing.T) {
	n := newNames(&Options{Key: []byte("a key"), KeepExtensions: true})
	for name, want := range map[string]string{"report.pdf": ".pdf", "x.tar.gz": ".gz", ".profile": "", "a.secretary": ""} {
		got := replaced(n, xdr.Name, name)
		if len(got) != len(name) || !strings.HasSuffix(got, want) || want == "" && strings.HasSuffix(got, name[1:]) || strings.HasPrefix(got, name[:1]+name[1:2]) {
			t.Errorf("%q becomes %q", name, got)
		}
	}
}

// TestNamesPath: a name is replaced in a path as by itself.
func TestNamesPath(t *testing.T) {
	n := newNames(&Options{Key: []byte("a key")})
	want := "/" + replaced(n, xdr.Name, "export") + "/" + replaced(n, xdr.Name, "a.txt")
	if got := replaced(n, xdr.Path, "/export/a.txt"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNamesDiffer: no two are replaced by the same, however short.
func TestNamesDiffer(t *testing.T) {
	n := newNames(&Options{Key: []byte("a key")})
	seen := map[string]string{}
	check := func(c xdr.Class, s string) {
		got := replaced(n, c, s)
		key := fmt.Sprint(c, got)
		if old, ok := seen[key]; ok {
			t.Errorf("%q and %q become %q", old, s, got)
		}
		seen[key] = s
	}
	for i := range alphabet {
		if i < inLabel {
			check(xdr.Name, alphabet[i:i+1])
		}
		for j := range alphabet {
			if s := alphabet[i:i+1] + alphabet[j:j+1]; s != ".." {
				check(xdr.Name, s)
			}
		}
	}
	for i := range 1 << 16 {
		check(xdr.Handle, string([]byte{byte(i >> 8), byte(i)}))
	}
}

func TestNamesAllocs(t *testing.T) {
	n := newNames(&Options{Key: []byte("a key")})
	src := bytes.Repeat([]byte("x"), 20)
	dst := make([]byte, len(src))
	if got := testing.AllocsPerRun(100, func() { n.replace(xdr.Name, dst, src) }); got != 0 {
		t.Errorf("%v allocations for a name that is known", got)
	}
}
