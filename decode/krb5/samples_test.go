package krb5_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

const samples = "../../samples/kerberos"

const (
	privacy   = "rocev2-nfs41-krb5p"
	integrity = "rocev2-nfs3-krb5i"
)

func load(t testing.TB, name string) *krb5.Keytab {
	t.Helper()
	k, err := krb5.LoadKeytab("FILE:" + filepath.Join(samples, name+".keytab"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// skipping leaves out the first packets of a capture.
type skipping struct {
	capture.Reader
	skip uint64
}

func (s *skipping) Read(b *capture.Batch) error {
	for {
		if err := s.Reader.Read(b); err != nil {
			return err
		}
		list := b.Packets[:0]
		for _, p := range b.Packets {
			if p.Number > s.skip {
				list = append(list, p)
			}
		}
		if b.Packets = list; len(list) > 0 {
			return nil
		}
	}
}

// each decodes a sample without its first packets.
func each(t testing.TB, name string, skip uint64, u rpc.Unwrapper, f func(*rpc.View)) {
	t.Helper()
	r, err := capture.Open([]string{filepath.Join(samples, name+".pcap.zst")}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	view := rpc.View{Unwrap: u}
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		view.Set(tx)
		f(&view)
	})
	if err := d.Run(&skipping{r, skip}); err != nil {
		t.Fatal(err)
	}
}

func data(v *rpc.View) bool {
	return v.CallErr == nil && v.Call().Cred.Flavor == oncrpc.RPCSecGSS && v.Call().GSS.Proc == oncrpc.GSSData
}

// TestSamples decrypts each message of the samples. The golden files of the commands compare the
// contents.
func TestSamples(t *testing.T) {
	for _, c := range []struct {
		name                string
		decrypted, verified int
	}{{privacy, 25, 7}, {integrity, 0, 17}} {
		t.Run(c.name, func(t *testing.T) {
			contexts := krb5.New(load(t, c.name), krb5.Options{})
			decrypted, verified := 0, 0
			each(t, c.name, 0, contexts, func(v *rpc.View) {
				if len(v.Tx.Notes) > 0 {
					t.Errorf("packet %d: %q", v.Tx.First().Number, v.Tx.Notes)
				}
				if !data(v) || v.Wrapped() == "" {
					return
				}
				how := rpc.Verified
				if v.Wrapped() == "privacy" {
					how = rpc.Decrypted
					decrypted++
				} else {
					verified++
				}
				if v.CallOpened.How != how || v.ReplyOpened.How != how {
					t.Errorf("packet %d: call %v, reply %v", v.Tx.First().Number, v.CallOpened.How, v.ReplyOpened.How)
				}
				if v.Args() == nil || v.Result() == nil || v.ArgsErr != nil || v.ResultErr != nil || v.ArgsLeft != 0 || v.ResultLeft != 0 {
					t.Errorf("packet %d: %v %v, %d and %d bytes left", v.Tx.First().Number, v.ArgsErr, v.ResultErr, v.ArgsLeft, v.ResultLeft)
				}
				if v.Principal != "nfs/client.rig.test@RIG.TEST" && v.Principal != "root@RIG.TEST" {
					t.Errorf("packet %d: principal %q", v.Tx.First().Number, v.Principal)
				}
			})
			if decrypted != c.decrypted || verified != c.verified {
				t.Errorf("%d transactions decrypted, %d verified, want %d and %d", decrypted, verified, c.decrypted, c.verified)
			}
			if s := contexts.Summary(); s.Opened == 0 || s.Closed+s.Unknown+s.Refused+s.Evicted != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestWithoutKey: without a key nothing is decrypted, and the summary names the needed key.
func TestWithoutKey(t *testing.T) {
	contexts := krb5.New(nil, krb5.Options{})
	each(t, privacy, 0, contexts, func(v *rpc.View) {
		if len(v.Tx.Notes) > 0 || v.Opening() != rpc.NotOpened || v.Principal != "" {
			t.Errorf("packet %d: %q", v.Tx.First().Number, v.Tx.Notes)
		}
		if v.Wrapped() == "privacy" && (v.Args() != nil || v.Status() != "") {
			t.Errorf("packet %d is readable", v.Tx.First().Number)
		}
	})
	s := contexts.Summary()
	if s.Closed != 1 || s.Service != "nfs/server.rig.test@RIG.TEST" || s.KVNO != 2 || s.EType != krb5.AES256SHA1 || s.Unknown != 0 {
		t.Errorf("%+v", s)
	}
}

func TestWrongKeytab(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(samples, privacy+".keytab"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(s string) int { return bytes.Index(raw, []byte(s)) }
	for _, c := range []struct {
		name   string
		change func(b []byte)
		want   string
	}{
		{"stale key", func(b []byte) { b[60] ^= 1 }, "the keytab's key of nfs/server.rig.test@RIG.TEST (kvno 2, aes256-cts-hmac-sha1-96) is not the one"},
		{"other version", func(b []byte) { b[60] ^= 1; b[48], b[len(b)-1] = 1, 1 }, "other versions of the key, none of nfs/server.rig.test@RIG.TEST (kvno 2, aes256-cts-hmac-sha1-96)"},
		{"other service", func(b []byte) { b[60] ^= 1; b[at("nfs")] = 'N' }, "no key of nfs/server.rig.test@RIG.TEST (kvno 2,"},
		{"other type", func(b []byte) { b[50] = 17 }, "no key of this type for nfs/server.rig.test@RIG.TEST (kvno 2, aes256-cts-hmac-sha1-96)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bytes.Clone(raw)
			c.change(b)
			k, err := krb5.ParseKeytab(b)
			if err != nil {
				t.Fatal(err)
			}
			contexts := krb5.New(k, krb5.Options{})
			inits, told := 0, 0
			each(t, privacy, 0, contexts, func(v *rpc.View) {
				for _, n := range v.Tx.Notes {
					if !strings.Contains(n.String(), c.want) {
						t.Errorf("packet %d: %q, want %q", v.Tx.First().Number, n, c.want)
					}
					if v.Wrapped() == "init" {
						inits++
					} else {
						told++
					}
				}
				if v.Opening() != rpc.NotOpened {
					t.Errorf("packet %d was opened", v.Tx.First().Number)
				}
			})
			if inits != 2 || told != 2 {
				t.Errorf("%d notes at the creation of contexts and %d at their first use, want 2 and 2", inits, told)
			}
			if s := contexts.Summary(); s.Closed != 2 || !strings.Contains(s.Problem, c.want) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestMisnamed: a keytab with the right key decrypts tickets, whatever name it has for the key.
func TestMisnamed(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(samples, privacy+".keytab"))
	if err != nil {
		t.Fatal(err)
	}
	raw[bytes.Index(raw, []byte("nfs"))] = 'N'
	k, err := krb5.ParseKeytab(raw)
	if err != nil {
		t.Fatal(err)
	}
	contexts := krb5.New(k, krb5.Options{})
	each(t, privacy, 0, contexts, func(*rpc.View) {})
	if s := contexts.Summary(); s.Opened != 2 || s.Closed != 0 {
		t.Errorf("%+v", s)
	}
}

// TestMidstream begins after the creation of the context.
func TestMidstream(t *testing.T) {
	contexts := krb5.New(load(t, privacy), krb5.Options{})
	told := 0
	each(t, privacy, 90, contexts, func(v *rpc.View) {
		for _, n := range v.Tx.Notes {
			if n.Kind == transaction.KRB5ContextUnknown {
				told++
			}
		}
	})
	if s := contexts.Summary(); told != 2 || s.Unknown != 2 || s.Closed != 0 {
		t.Errorf("told %d times, %+v", told, s)
	}
}

// TestFlipped flips a bit of each protected byte of some messages: none may pass.
func TestFlipped(t *testing.T) {
	for _, name := range []string{privacy, integrity} {
		contexts := krb5.New(load(t, name), krb5.Options{})
		transactions := 0
		var w rpc.View
		w.Unwrap = contexts
		each(t, name, 0, contexts, func(v *rpc.View) {
			if !data(v) || v.Wrapped() == "" || v.Tx.Call.Bytes > 1000 {
				return
			}
			if transactions++; transactions > 6 {
				return
			}
			for _, m := range []*transaction.Message{&v.Tx.Call, &v.Tx.Reply} {
				payload := m.Payload
				copied := bytes.Clone(payload)
				m.Payload = copied
				offset, opened := v.CallBody().Offset, &w.CallOpened
				if m == &v.Tx.Reply {
					offset, opened = v.ReplyBody().Offset, &w.ReplyOpened
				}
				end := offset + v.CallBody().Length
				if m == &v.Tx.Reply {
					end = offset + v.ReplyBody().Length
				}
				for i := offset; i < end; i++ {
					copied[i] ^= 1 << (i % 8)
					if w.Set(v.Tx); opened.How != rpc.Refused {
						t.Fatalf("%s: packet %d, byte %d of the message flipped: %v", name, m.First.Number, i, opened.How)
					}
					copied[i] = payload[i]
				}
				m.Payload = payload
			}
		})
		if transactions < 6 {
			t.Errorf("%s: %d transactions", name, transactions)
		}
	}
}

// TestCut cuts messages at each byte: the fields shown of a cut message are the same as those of
// the whole one.
func TestCut(t *testing.T) {
	contexts := krb5.New(load(t, privacy), krb5.Options{})
	w := rpc.View{Unwrap: contexts}
	prefixes := 0
	each(t, privacy, 0, contexts, func(v *rpc.View) {
		if !data(v) || v.Tx.Call.Bytes > 1000 || v.CallOpened.How != rpc.Decrypted {
			return
		}
		m := &v.Tx.Call
		payload := m.Payload
		whole := bytes.Clone(v.CallOpened.Data)
		for n := v.CallBody().Offset; n < len(payload); n++ {
			m.Payload = payload[:n:n]
			w.Set(v.Tx)
			o := &w.CallOpened
			switch {
			case o.How == rpc.Prefix:
				prefixes++
				if !bytes.HasPrefix(whole, o.Data) || o.Length != len(whole) {
					t.Fatalf("cut at %d: %x of %d, want %x", n, o.Data, o.Length, whole)
				}
			case o.How != rpc.NotOpened && n < v.CallBody().Offset+v.CallBody().Length:
				t.Fatalf("cut at %d: %v", n, o.How)
			}
		}
		m.Payload = payload
	})
	if prefixes == 0 {
		t.Error("nothing was decrypted of cut messages")
	}
}

// TestAllocations: the steady path allocates nothing.
func TestAllocations(t *testing.T) {
	for _, name := range []string{privacy, integrity} {
		contexts := krb5.New(load(t, name), krb5.Options{})
		n := 0
		w := rpc.View{Unwrap: contexts}
		each(t, name, 0, contexts, func(v *rpc.View) {
			if !data(v) || v.Wrapped() == "" {
				return
			}
			if n++; n != 8 && n != 20 {
				return
			}
			w.Set(v.Tx)
			if a := testing.AllocsPerRun(50, func() { w.Set(v.Tx) }); a > 0 {
				t.Errorf("%s, packet %d: %v allocations", name, v.Tx.First().Number, a)
			}
		})
	}
}
