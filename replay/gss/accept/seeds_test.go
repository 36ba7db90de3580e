package accept_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/krbtest"
	"github.com/rpcrdma/toolkit/replay/gss/accept"
)

// samples are the captures of the Linux kernel with Kerberos.
const samples = "../../../samples/kerberos/*.pcap.zst"

// captured calls f for each call with RPCSEC_GSS of the samples.
func captured(t testing.TB, f func(call []byte)) {
	t.Helper()
	names, err := filepath.Glob(samples)
	if err != nil || len(names) == 0 {
		t.Fatal("no samples", err)
	}
	for _, name := range names {
		r, err := capture.Open([]string{name}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := decode.New(decode.Options{Transactions: transaction.Options{KeepData: true}}, func(tx *transaction.Transaction) {
			var h oncrpc.Call
			if b := tx.Call.Payload; h.Decode(b, len(b)) == nil && h.Cred.Flavor == oncrpc.RPCSecGSS {
				f(b)
			}
		})
		if err := d.Run(r); err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
	}
}

func seeds(f *testing.F, h *accept.Handler, realm *krbtest.Realm) {
	captured(f, func(call []byte) { f.Add(append([]byte{}, call...)) })
	ticket := realm.Ticket("alice", time.Now(), time.Hour)
	r, err := krb5.NewRequest(ticket, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(initCall(r.Token()))
	// Calls of a context that no longer exists, with another handle.
	p := connect(f, h, ticket, "192.0.2.1")
	for seq, s := range []oncrpc.Service{oncrpc.ServiceNone, oncrpc.ServiceIntegrity, oncrpc.ServicePrivacy} {
		f.Add(p.call(oncrpc.GSSData, uint32(seq+1), s, args))
	}
	f.Add(p.call(oncrpc.GSSDestroy, 9, oncrpc.ServiceNone, nil))
}

// TestCaptured sends a server what Linux sent to another one: it can decrypt none of the calls,
// and answers all of them.
func TestCaptured(t *testing.T) {
	h, e, _ := newHandler(t, accept.Options{})
	n := 0
	captured(t, func(call []byte) {
		n++
		if serve(t, h, call, "192.0.2.1") == nil {
			t.Error("no answer")
		}
	})
	if s := h.Stats(); n < 20 || e.calls > 0 || s.Calls+s.Contexts > 0 || s.Refused+s.Unknown == 0 {
		t.Errorf("%d calls: %+v", n, s)
	}
}

// TestCapturedRequest accepts the AP-REQ of Linux's gssd (MIT) with the keytab of the
// sample, at the time of the capture.
func TestCapturedRequest(t *testing.T) {
	names, _ := filepath.Glob("../../../samples/kerberos/*.keytab")
	accepted := 0
	for _, name := range names {
		tab, err := krb5.LoadKeytab(name)
		if err != nil {
			t.Fatal(err)
		}
		sample := name[:len(name)-len("keytab")] + "pcap.zst"
		r, err := capture.Open([]string{sample}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
			var h oncrpc.Call
			if b := tx.Call.Payload; h.Decode(b, len(b)) != nil || h.Cred.Flavor != oncrpc.RPCSecGSS || h.GSS.Proc != oncrpc.GSSInit {
				return
			}
			then := time.Unix(0, tx.First().Time)
			s := accept.New(&echo{}, accept.Options{Keytab: tab, Now: func() time.Time { return then }})
			_, res := result(t, serve(t, s, tx.Call.Payload, "192.0.2.1"))
			if res.Major != 0 || len(res.Token) == 0 {
				t.Errorf("%s: %s", sample, oncrpc.GSSMajorName(res.Major))
			}
			accepted++
		})
		if err := d.Run(r); err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
	}
	if accepted < 2 {
		t.Errorf("%d requests", accepted)
	}
}
